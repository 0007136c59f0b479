import Authentication
package import Foundation
package import HTTPServer
package import NotificationHubs
import Wire

/// The app backend of the tutorials "Notify users" and "Secure push": registers devices on behalf
/// of signed-in users, and stores payloads that must not pass through the push services.
/// docs/backend.md lists the requests.
///
/// It uses only the public API of its hub, so it works with any hub.
package struct BackendAPI: HTTPHandler {
  private let router: HTTPRouter
  private let store: BackendStore
  private let now: @Sendable () -> Date
  private let report: @Sendable (BackendEvent) -> Void
  private let upkeep: @Sendable () async throws -> Void

  package init(
    hub: NotificationHubClient, store: BackendStore, signIn: SignIn,
    configuration: BackendConfiguration = BackendConfiguration(),
    transport: any HTTPTransport = URLSessionTransport.shared,
    now: @escaping @Sendable () -> Date = { Date() },
    report: @escaping @Sendable (BackendEvent) -> Void = { _ in }
  ) {
    let sessions = SessionTokens(store: store)
    let authenticator = Authenticator(
      signIn, sessions: sessions, store: store, transport: transport, now: now)
    let tokens = TokenService(
      tokens: sessions, store: store, configuration: configuration, now: now)
    let people = People(kinds: signIn.kinds, everyoneSends: signIn.everyoneSends)
    let locks = DeviceLocks()
    let devices = DeviceService(
      hub: hub, store: store, devicesPerUser: configuration.devicesPerUser, locks: locks, now: now)
    let notifications = NotificationService(
      hub: hub, store: store, configuration: configuration, now: now, people: people,
      report: report)
    let users = UserService(hub: hub, store: store, people: people, locks: locks, now: now)
    upkeep = { [kinds = signIn.kinds] in
      let unsure = try await store.settle(kinds)
      if unsure > 0 {
        report(
          .trouble(
            "\(unsure) users of an older version could be names or subjects of tokens: what was "
              + "stored for them belongs to nobody until it expires, and their devices register "
              + "again when their app next starts"))
      }
      try await devices.renewOldTags()
    }
    self.store = store
    self.now = now
    self.report = report

    var router = HTTPRouter { status, request in
      let reason =
        switch status {
        case .notFound: "there is nothing at this address; see `belfry backend --help`"
        case .methodNotAllowed: "\(request.method.rawValue) is not done at this address"
        case .contentTooLarge: "the body is too large"
        case .serviceUnavailable: "the server is stopping; try again later"
        default: "the request cannot be served"
        }
      return Self.reply(APIFailure(status, reason))
    }
    func on(
      _ method: HTTPMethod, _ pattern: String, takesRefreshTokens: Bool = false,
      _ action: @escaping @Sendable (Call) async throws -> HTTPResponse
    ) {
      router.on(method, pattern) { request, parameters in
        // A browser with a saved password adds it to requests that any page triggers.
        if request.isFromElsewhere(allowsNavigation: true) {
          return Self.reply(APIFailure(.forbidden, "pages of other sites cannot ask for this"))
        }
        do {
          let identity = try await authenticator.identify(
            request, takesRefreshTokens: takesRefreshTokens)
          return try await action(
            Call(request: request, parameters: parameters, identity: identity))
        } catch let failure as APIFailure {
          return Self.reply(failure)
        } catch let error as NotificationHubError {
          return Self.reply(APIFailure(hub: error))
        } catch {
          // The error is not part of the reply, since its text could contain anything.
          report(.trouble("\(request.method.rawValue) failed: \(type(of: error)): \(error)"))
          return Self.reply(
            APIFailure(.serviceUnavailable, "the server could not do this; try again later"))
        }
      }
    }
    on(.post, "/api/token", takesRefreshTokens: true) { try await tokens.issue($0) }
    on(.delete, "/api/token", takesRefreshTokens: true) { try await tokens.revoke($0) }
    on(.post, "/api/token/hub") { try await tokens.issueHubToken($0) }
    on(.post, "/api/register") { try await devices.makeRegistrationID($0) }
    on(.put, "/api/register/{id}") { try await devices.putRegistration($0) }
    on(.delete, "/api/register/{id}") { try await devices.deleteRegistration($0) }
    on(.put, "/api/installations/{id}") { try await devices.putInstallation($0) }
    on(.delete, "/api/installations/{id}") { try await devices.deleteInstallation($0) }
    on(.post, "/api/notifications") { try await notifications.create($0) }
    on(.get, "/api/notifications") { try await notifications.list($0) }
    on(.get, "/api/notifications/{id}") { try await notifications.read($0) }
    on(.delete, "/api/notifications/{id}") { try await notifications.delete($0) }
    on(.delete, "/api/users/{name}") { try await users.erase($0) }
    router.on(.get, "/health") { _, _ in
      do {
        try await store.check()
        return Self.json(.ok, .object([.init("status", .string("ready"))]))
      } catch {
        return Self.reply(APIFailure(.serviceUnavailable, "the database cannot be used"))
      }
    }
    self.router = router
  }

  /// Every supported request, such as `GET /health`.
  var requests: [String] { router.patterns.map { "\($0.method.rawValue) \($0.pattern)" } }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    await router.respond(to: request)
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    router.reject(status, request: request)
  }

  // MARK: Upkeep

  /// Migrates the data of older versions, and updates the devices' tags at the hub. Runs once at
  /// the start.
  package func settle() async throws { try await upkeep() }

  /// Runs ``settle()``, then removes expired data once a minute until the task is cancelled.
  package func keepUp() async {
    var isSettled = false
    while !Task.isCancelled {
      do {
        if !isSettled { try await settle() }
        isSettled = true
      } catch {
        report(.trouble("what an older version stored could not be sorted yet: \(error)"))
      }
      do { try await store.sweep(at: now()) } catch {
        report(.trouble("what has expired could not be removed: \(error)"))
      }
      try? await Task.sleep(for: .seconds(60))
    }
  }

  // MARK: Replies

  /// The replies contain secrets, so intermediaries must not store them.
  static func json(_ status: HTTPStatus, _ value: JSONValue) -> HTTPResponse {
    HTTPResponse(
      status,
      headers: ["Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"],
      body: .bytes(value.jsonBytes))
  }

  static func reply(_ failure: APIFailure) -> HTTPResponse {
    var response = json(failure.status, .object([.init("Message", .string(failure.message))]))
    for (name, value) in failure.headers { response.headers.add(name, value) }
    return response
  }
}

/// A request of a signed-in user.
struct Call: Sendable {
  let request: HTTPRequest
  let parameters: HTTPPathParameters
  let identity: Identity

  var user: UserName { identity.user }

  func parameter(_ name: String) throws -> String {
    guard let text = parameters[name], !text.isEmpty, !text.hasDotSegment, text.utf8.count <= 256
    else {
      throw APIFailure(.badRequest, "the address does not hold a usable \(name)")
    }
    return text
  }

  /// The body as a JSON object.
  /// - Returns: `nil` if there is no body.
  func document() throws -> JSONValue? {
    guard request.body.contains(where: { $0 > 0x20 }) else { return nil }
    let document: JSONValue
    do { document = try JSONValue.parse(request.body) } catch {
      throw APIFailure(.badRequest, error.message)
    }
    guard case .object = document else {
      throw APIFailure(.badRequest, "the body must be a JSON object")
    }
    return document
  }

  /// An audit line about this request.
  func audit(_ action: String, _ subject: String, at now: Date) -> AuditLine {
    AuditLine(
      at: now, actor: user.key, action: action, subject: subject, outcome: "done",
      address: request.remoteAddress)
  }
}

/// An error reply in the format of the tutorials' backend: `{"Message":"…"}`.
struct APIFailure: Error {
  let status: HTTPStatus
  let message: String
  var headers: [(name: String, value: String)] = []

  init(_ status: HTTPStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The same reply whether the object does not exist or belongs to another user.
  static func notFound(_ what: String) -> APIFailure {
    APIFailure(.notFound, "there is no such \(what)")
  }

  /// A failure between the backend and its hub. The hub's own message is passed on only for
  /// mistakes of the caller.
  init(hub error: NotificationHubError) {
    switch error.kind {
    case .badRequest, .tooLarge, .conflict:
      self.init(.badRequest, error.detail ?? "the hub does not take this")
    case .gone:
      self.init(.gone, "the registration is gone: ask for a new id with POST /api/register")
    case .notFound: self.init(.notFound, "the hub has no such registration or installation")
    case .quotaExceeded, .serverBusy, .unreachable:
      self.init(.serviceUnavailable, "the notification hub does not answer; try again later")
      headers.append(("Retry-After", String(error.retryAfter ?? 5)))
    default:
      self.init(
        502, "the notification hub refuses this backend; its connection string may be wrong")
    }
  }
}
