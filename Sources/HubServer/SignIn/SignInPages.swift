import Authentication
import Foundation
package import HTTPServer
package import HubCore
import NotificationHubs

/// The portal's calls for signing operators in and out, below `/$portal/session` and
/// `/$portal/oidc`.
package struct SignInPages: HTTPHandler {
  private let signIn: OperatorSignIn?
  private let service: HubService
  private let journal: SignInJournal
  private let provider: ProviderPages?
  private let hasLocalUser: Bool
  private let next: any HTTPHandler

  /// - Parameters:
  ///   - signIn: The sign-in of operators; `nil` if there are only keys.
  ///   - next: The handler for all other requests.
  ///   - journal: The journal, shared by all listeners.
  ///   - hasLocalUser: Whether a ``PortalController`` signs the local user in.
  package init(
    _ signIn: OperatorSignIn?, service: HubService, journal: SignInJournal,
    hasLocalUser: Bool = false,
    next: any HTTPHandler
  ) {
    self.signIn = signIn
    self.service = service
    self.hasLocalUser = hasLocalUser
    self.journal = journal
    provider = signIn.flatMap { signIn in
      signIn.provider.map { ProviderPages(signIn: signIn, provider: $0, journal: journal) }
    }
    self.next = next
  }

  package func next(for request: HTTPRequest) -> (any HTTPHandler)? {
    request.target.pathSegments.first?.decoded == "$portal" ? nil : next
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let next = next(for: request) { return await next.respond(to: request) }
    let segments = request.target.pathSegments
    let names = segments.map { $0.decoded ?? "" }
    switch (names.dropFirst().first, names.dropFirst(2)) {
    case ("session", _): break
    case ("oidc", ["start"]) where request.method == .get:
      return await provider?.start(request) ?? Self.nothing
    case ("oidc", ["callback"]) where request.method == .get:
      return await provider?.callback(request) ?? Self.nothing
    case ("oidc", _): return Self.nothing
    default: return await next.respond(to: request)
    }
    let action: @Sendable (HTTPRequest) async throws -> HTTPResponse
    switch (request.method, names.dropFirst(2)) {
    case (.get, []): action = session
    case (.post, []): action = begin
    case (.delete, []): action = end
    case (.post, ["confirm"]): action = confirm
    default: return Self.nothing
    }
    return await WebPageCalls.answer(request, failing: "The session cannot be read") {
      try await action(request)
    }
  }

  private static var nothing: HTTPResponse {
    WebPageCalls.refusal(.notFound, "There is no such thing at the portal")
  }

  package func look(atHead head: HTTPRequest) -> HTTPHeadLook {
    next.look(atHead: head)
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: request)
  }

  // MARK: Calls

  private struct State: Encodable {
    let ways: [String]
    /// The display name of the OpenID provider.
    let oidcName: String?
    let user: String?
    let hubs: [String: String]?
    /// The maximum time between two requests of a session, in seconds.
    let idle: Int?
    /// Whether keys may be shown and things deleted at present.
    let confirmed: Bool?
    /// The method by which the operator can confirm their identity.
    let confirmation: String?
    /// See ``HubLimits/keptText``.
    let keptText: Int?

    enum CodingKeys: CodingKey {
      case ways, oidcName, user, hubs, idle, confirmed, confirmation, keptText
    }
    func encode(to encoder: any Encoder) throws {
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode(ways, forKey: .ways)
      // Encoded even if there is none: the page asks for it.
      try members.encode(user, forKey: .user)
      try members.encode(hubs, forKey: .hubs)
      try members.encode(keptText, forKey: .keptText)
      try members.encodeIfPresent(oidcName, forKey: .oidcName)
      try members.encodeIfPresent(confirmation, forKey: .confirmation)
      try members.encodeIfPresent(idle, forKey: .idle)
      try members.encodeIfPresent(confirmed, forKey: .confirmed)
    }
  }

  private func session(_ request: HTTPRequest) async throws -> HTTPResponse {
    var one: OperatorSignIn.Operator?
    if let signIn, let token = request.sessionToken, request.isOfSameOrigin {
      one = try await signIn.find(token)
    }
    return try await state(of: one)
  }

  private func state(of one: OperatorSignIn.Operator?) async throws -> HTTPResponse {
    var hubs: [String: String]?
    if let one {
      var roles: [String: String] = [:]
      roles["*"] = one.roles.everywhere?.rawValue
      for hub in try await service.hubs() { roles[hub.name] = one.roles[hub.name]?.rawValue }
      hubs = roles
    }
    return try WebPageCalls.json(
      State(
        ways: (hasLocalUser ? ["local"] : []) + ["key"] + (await signIn?.ways() ?? []),
        oidcName: signIn?.provider?.configuration.name, user: one?.user.text, hubs: hubs,
        idle: one.flatMap { _ in signIn.map { Int($0.options.idle) } }, confirmed: one?.isConfirmed,
        confirmation: one.map { $0.user.kind == .name ? "password" : "oidc" },
        keptText: service.limits.keptText.map { Int($0) }))
  }

  private struct Credentials: Decodable {
    let user: String
    let password: String
  }

  private func begin(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let signIn, await signIn.ways().contains("password") else {
      throw HubFailure(
        status: 404, message: "There are no operators here; sign in with a key instead")
    }
    let given: Credentials = try WebPageCalls.body(of: request)
    guard given.password.utf8.count <= 1024 else { throw HubFailure.wrongPassword }
    guard request.isOfSameOrigin else { throw HubFailure.fromElsewhere }
    guard let cookie = SessionCookie(for: request) else {
      throw HubFailure(
        status: 403, message: "Sign in over https: a password in the clear can be read on its way")
    }
    let (token, one): (String, OperatorSignIn.Operator)
    do {
      (token, one) = try await signIn.signIn(
        given.user, password: given.password, from: request.remoteAddress,
        replacing: request.sessionToken)
    } catch {
      if error == .wrongPassword {
        let user = UserName(typed: given.user)
        let isThere = if let user { await signIn.roles(of: user) != nil } else { false }
        await journal.failed(
          as: isThere ? user.map { "user/\($0.text)" } : nil, request, status: error.status)
      }
      throw error
    }
    await journal.signedIn(one, request)
    var response = try await state(of: one)
    response.headers.add("Set-Cookie", cookie.setting(token))
    return response
  }

  private func end(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard request.isOfSameOrigin else { throw HubFailure.fromElsewhere }
    if let signIn, let token = request.sessionToken { try await signIn.signOut(token) }
    var response = HTTPResponse(.noContent)
    if let cookie = SessionCookie(for: request) {
      response.headers.add("Set-Cookie", cookie.deletion)
    }
    return response
  }

  private struct Confirmation: Decodable {
    let password: String
  }

  private func confirm(_ request: HTTPRequest) async throws -> HTTPResponse {
    let given: Confirmation = try WebPageCalls.body(of: request)
    guard request.isOfSameOrigin else { throw HubFailure.fromElsewhere }
    guard let signIn, let token = request.sessionToken, let one = try await signIn.find(token)
    else {
      throw HubFailure.signedOut
    }
    guard given.password.utf8.count <= 1024 else { throw HubFailure.wrongPassword }
    do {
      try await signIn.confirm(one, password: given.password, from: request.remoteAddress)
    } catch {
      if error == .wrongPassword {
        await journal.failed(.confirm, as: one.name, request, status: error.status)
      }
      throw error
    }
    return HTTPResponse(.noContent)
  }
}
