public import Foundation
public import NotificationHubs
import Wire

/// A device's client for its app backend: registers the device on behalf of the signed-in user, and
/// fetches payloads that did not travel through the push service.
///
/// ```swift
/// let url = URL(string: "https://push.example.com")!
/// // Once, when the user signs in. The token is kept, the password is not.
/// let token = try await SecurePushClient.signIn(backend: url, user: "alice", password: password)
/// let backend = SecurePushClient(
///   backend: url, credentials: .token(token) { renewed in try keep(renewed) })
/// try await backend.install(installation)
/// let secret = try await backend.payload(of: message.id)
/// ```
/// Every call throws ``SecurePushClientError``, or `CancellationError`.
public struct SecurePushClient: Sendable {
  /// The way in which the user authenticates.
  public enum Credentials: Sendable {
    /// HTTP Basic, as in the tutorials. Only over TLS, or on this machine. An app should store a
    /// token instead: ``SecurePushClient/signIn(backend:user:password:transport:)``.
    case password(user: String, password: String)
    /// An access token of an OpenID provider, requested before each call.
    case bearer(@Sendable () async throws -> String)
    /// A sign-in at the backend; clients that share it renew its token only once.
    case session(SignInSession)

    /// The token that ``SecurePushClient/signIn(backend:user:password:transport:)`` returned.
    /// - Parameter save: Called with each token that replaces it, to be stored.
    public static func token(
      _ token: SignInToken, save: @escaping @Sendable (SignInToken) async throws -> Void = { _ in }
    ) -> Credentials {
      .session(SignInSession(token, save: save))
    }
  }

  /// A message as the backend returns it.
  public struct Message: Hashable, Sendable {
    public let id: String
    public let payload: String
    /// Whether the message had been read before with this sign-in.
    public let wasRead: Bool
  }

  private let backend: URL
  private let credentials: Credentials
  private let transport: any HTTPTransport

  /// - Parameter backend: The URL of the backend, without the path `/api`.
  public init(
    backend: URL, credentials: Credentials,
    transport: any HTTPTransport = URLSessionTransport.shared
  ) {
    self.backend = backend
    self.credentials = credentials
    self.transport = transport
  }

  // MARK: Signing in and out

  /// Signs in with a password and returns a token to store in its place.
  ///
  /// - Parameter backend: The URL of the backend, without the path `/api`.
  /// - Throws: ``SecurePushClientError/notSignedIn(_:)`` if the user name or password is wrong.
  public static func signIn(
    backend: URL, user: String, password: String,
    transport: any HTTPTransport = URLSessionTransport.shared
  ) async throws -> SignInToken {
    let client = SecurePushClient(
      backend: backend, credentials: .password(user: user, password: password),
      transport: transport)
    return try SignInToken(try await client.call("POST", ["token"]))
  }

  /// Signs out by revoking the token of this client. With a password or a provider's token it
  /// revokes every token of the user. A token that is no longer valid is not an error.
  public func signOut() async throws {
    do {
      _ = try await call("DELETE", ["token"])
    } catch SecurePushClientError.notSignedIn {}
  }

  /// Returns a token with the Listen right on the hub, for an app that registers with the hub
  /// itself.
  ///
  /// ```swift
  /// let hub = NotificationHubClient(
  ///   endpoint: endpoint, hub: "news", tokens: TokenProvider { try await backend.hubToken() })
  /// ```
  /// - Parameter installation: Restricts the token to this installation, which must be the user's
  ///   own or new.
  /// - Throws: ``SecurePushClientError/notFound`` if the backend issues no such tokens.
  public func hubToken(installation: String? = nil) async throws -> SharedAccessSignature {
    let query = installation.map { [URLQueryItem(name: "installation", value: $0)] }
    let reply = try await call("POST", ["token", "hub"], query: query ?? [])
    guard case .string(let text)? = (try? JSONValue.parse(reply.body))?["token"],
      let token = try? SharedAccessSignature(parsing: text)
    else { throw SecurePushClientError.unexpectedReply }
    return token
  }

  // MARK: Devices

  /// Writes this device's installation. The backend sets the user and the user tag.
  public func install(_ installation: Installation) async throws {
    _ = try await call(
      "PUT", ["installations", installation.installationID], body: installation.jsonData)
  }

  /// Removes this device from the hub, on sign-out. A device that does not exist is not an error.
  public func uninstall(_ installationID: String) async throws {
    do {
      _ = try await call("DELETE", ["installations", installationID])
    } catch SecurePushClientError.notFound {}
  }

  /// Requests a registration id, as in the tutorial; existing registrations of the handle are
  /// deleted.
  public func registrationID(handle: String? = nil) async throws -> String {
    let query = handle.map { [URLQueryItem(name: "handle", value: $0)] }
    let reply = try await call("POST", ["register"], query: query ?? [])
    guard case .string(let id)? = try? JSONValue.parse(reply.body), !id.isEmpty else {
      throw SecurePushClientError.unexpectedReply
    }
    return id
  }

  /// Writes the registration with that id.
  /// - Throws: ``SecurePushClientError/gone(_:)`` if a new id must be requested.
  public func register(
    _ id: String, platform: PushPlatform, handle: String, tags: [Tag] = []
  ) async throws {
    let body = JSONValue.object([
      .init("Platform", .string(platform.rawValue)), .init("Handle", .string(handle)),
      .init("Tags", .array(tags.map { .string($0.rawValue) })),
    ])
    _ = try await call("PUT", ["register", id], body: Data(body.jsonBytes))
  }

  public func unregister(_ id: String) async throws {
    _ = try await call("DELETE", ["register", id])
  }

  // MARK: Messages

  /// Fetches a message's payload.
  ///
  /// - Throws: ``SecurePushClientError/notFound`` if it is not this user's,
  ///   ``SecurePushClientError/gone(_:)`` if it was readable only once and has been read.
  public func payload(of id: String) async throws -> Message {
    let reply = try await call("GET", ["notifications", id])
    guard let document = try? JSONValue.parse(reply.body),
      case .string(let payload)? = document["payload"], case .bool(let wasRead)? = document["read"]
    else { throw SecurePushClientError.unexpectedReply }
    return Message(id: id, payload: payload, wasRead: wasRead)
  }

  /// Sends a secure notification.
  ///
  /// - Parameters:
  ///   - payload: The payload; `nil` sends the tutorial's "Secure confirmation."
  ///   - user: The recipient; `nil` for the caller. Only operators may send to others.
  @discardableResult
  public func send(
    _ payload: String? = nil, to user: String? = nil, readOnce: Bool = false
  ) async throws -> String {
    var members: [JSONValue.Member] = []
    if let payload { members.append(.init("payload", .string(payload))) }
    if let user { members.append(.init("to", .string(user))) }
    if readOnce { members.append(.init("readOnce", .bool(true))) }
    let reply = try await call(
      "POST", ["notifications"],
      body: members.isEmpty ? nil : Data(JSONValue.object(members).jsonBytes))
    guard case .string(let id)? = (try? JSONValue.parse(reply.body))?["id"] else {
      throw SecurePushClientError.unexpectedReply
    }
    return id
  }

  // MARK: Calls

  private func call(
    _ method: String, _ path: [String], query: [URLQueryItem] = [], body: Data? = nil
  ) async throws -> TransportReply {
    for part in path where !part.isPathSegment {
      throw SecurePushClientError.refused(
        status: 400, "'\(part.printable)' cannot be an id: it would change the request's path")
    }
    var url = backend.appending(path: "api")
    for part in path { url.append(component: part) }
    if !query.isEmpty { url.append(queryItems: query) }
    var headers = ["Accept": "application/json"]
    if body != nil { headers["Content-Type"] = "application/json" }
    var request = TransportRequest(method: method, url: url, headers: headers, body: body)
    guard case .session = credentials else {
      request.headers["Authorization"] = try await authorization()
      return try await Self.send(request, over: transport)
    }
    let token = try await accessToken()
    request.headers["Authorization"] = "Bearer " + token
    do {
      return try await Self.send(request, over: transport)
    } catch SecurePushClientError.notSignedIn {
      request.headers["Authorization"] = "Bearer " + (try await accessToken(insteadOf: token))
      return try await Self.send(request, over: transport)
    }
  }

  /// Returns the bearer token of a session, for a request that another type makes.
  ///
  /// - Parameter refused: The token that the backend has refused, which is renewed.
  package func accessToken(insteadOf refused: String? = nil) async throws -> String {
    guard case .session(let session) = credentials else {
      throw SecurePushClientError.notSignedIn("there is no session")
    }
    let token = await session.token
    guard token.token == refused else { return token.token }
    return try await session.renewed(after: token) { [backend, transport] token in
      let request = TransportRequest(
        method: "POST", url: backend.appending(path: "api/token"),
        headers: [
          "Accept": "application/json", "Authorization": "Bearer " + token.refreshToken,
        ])
      return try SignInToken(try await Self.send(request, over: transport))
    }.token
  }

  private static func send(
    _ request: TransportRequest, over transport: any HTTPTransport
  ) async throws -> TransportReply {
    try Task.checkCancellation()
    let reply: TransportReply
    do {
      reply = try await transport.send(request)
    } catch {
      // A transport may report cancellation as an error of its own.
      try Task.checkCancellation()
      throw SecurePushClientError.unreachable("\(error)")
    }
    guard (200...299).contains(reply.status) else { throw SecurePushClientError(reply) }
    return reply
  }

  private func authorization() async throws -> String {
    switch credentials {
    case .password(let user, let password):
      "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    case .bearer(let token): "Bearer " + (try await token())
    case .session(let session): "Bearer " + (await session.token.token)
    }
  }
}

/// The error of a call to the backend.
public enum SecurePushClientError: LocalizedError, Hashable, Sendable, CustomStringConvertible {
  /// The sign-in is missing, wrong or expired: show a general alert and ask the user to sign in.
  case notSignedIn(String)
  /// The user has no such message or device.
  case notFound
  case gone(String)
  /// Too many failed attempts, or the backend is busy; wait for the given number of seconds.
  case limited(retryAfter: Int?)
  /// The backend rejects the request as invalid or not permitted.
  case refused(status: Int, String)
  /// No reply, or the server is busy: try again later.
  case unreachable(String)
  case unexpectedReply

  init(_ reply: TransportReply) {
    let message = (try? JSONValue.parse(reply.body))?["message"]?.scalarText ?? ""
    switch reply.status {
    case 401: self = .notSignedIn(message)
    case 404: self = .notFound
    case 410: self = .gone(message)
    case 429: self = .limited(retryAfter: reply.retryAfter)
    case 403, 503:
      if let seconds = reply.retryAfter {
        self = .limited(retryAfter: seconds)
      } else {
        self =
          reply.status == 403 ? .refused(status: 403, message) : .unreachable(message)
      }
    case 300...399: self = .unreachable("it redirects (\(reply.status))")
    case 408, 500...599: self = .unreachable(message)
    default: self = .refused(status: reply.status, message)
    }
  }

  public var errorDescription: String? { description }
  public var description: String {
    switch self {
    case .notSignedIn(let message): "not signed in: \(message)"
    case .notFound: "there is no such message or device of this user's"
    case .gone(let message): message
    case .limited(let seconds):
      "the backend refuses requests for now; wait \(seconds.map { "\($0) seconds" } ?? "a while")"
    case .refused(let status, let message): "the backend refused (\(status)): \(message)"
    case .unreachable(let message): "the backend does not answer: \(message)"
    case .unexpectedReply: "the backend's reply makes no sense"
    }
  }
}
