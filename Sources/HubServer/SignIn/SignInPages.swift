import Authentication
import Foundation
package import HTTPServer
package import HubCore
import NotificationHubs

/// What the portal calls to sign an operator in and out: below `/$portal/session`.
package struct SignInPages: HTTPHandler {
  private let signIn: OperatorSignIn?
  private let service: HubService
  private let next: any HTTPHandler

  /// - Parameters:
  ///   - signIn: `nil`: there are no operators, only keys.
  ///   - next: Answers everything else.
  package init(_ signIn: OperatorSignIn?, service: HubService, next: any HTTPHandler) {
    self.signIn = signIn
    self.service = service
    self.next = next
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    let names = request.target.pathSegments.map { $0.decoded ?? "" }
    guard names.first == "$portal", names.dropFirst().first == "session" else {
      return await next.respond(to: request)
    }
    let action: @Sendable (HTTPRequest) async throws -> HTTPResponse
    switch (request.method, names.dropFirst(2)) {
    case (.get, []): action = session
    case (.post, []): action = begin
    case (.delete, []): action = end
    case (.post, ["confirm"]): action = confirm
    default: return WebPageCalls.refusal(.notFound, "There is no such thing at the portal")
    }
    return await WebPageCalls.answer(request, failing: "The session cannot be read") {
      try await action(request)
    }
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: request)
  }

  // MARK: Calls

  private struct State: Encodable {
    let ways: [String]
    let user: String?
    let hubs: [String: String]?
    /// Seconds without a request after which the session ends.
    let idle: Int?
    /// Whether keys may be shown and things deleted right now.
    let confirmed: Bool?

    enum CodingKeys: CodingKey { case ways, user, hubs, idle, confirmed }
    func encode(to encoder: any Encoder) throws {
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode(ways, forKey: .ways)
      // Told even when there is none: the page asks who is there.
      try members.encode(user, forKey: .user)
      try members.encode(hubs, forKey: .hubs)
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
        ways: ["key"] + (signIn?.ways ?? []), user: one?.user.text, hubs: hubs,
        idle: one.flatMap { _ in signIn.map { Int($0.options.idle) } }, confirmed: one?.isConfirmed)
    )
  }

  private struct Credentials: Decodable {
    let user: String
    let password: String
  }

  private func begin(_ request: HTTPRequest) async throws -> HTTPResponse {
    guard let signIn, !signIn.ways.isEmpty else {
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
    let (token, one) = try await signIn.signIn(
      given.user, password: given.password, from: request.remoteAddress,
      replacing: request.sessionToken)
    await log("signIn", of: one, request)
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
    try await signIn.confirm(one, password: given.password, from: request.remoteAddress)
    return HTTPResponse(.noContent)
  }

  /// A sign-in is no change, but who reads the log wants to know.
  private func log(
    _ action: String, of one: OperatorSignIn.Operator, _ request: HTTPRequest
  ) async {
    let note = ActivityNote(
      action, hub: 0, named: nil, by: Caller(name: one.name, via: .portal, rights: []),
      from: request.remoteAddress, at: service.clock.now())
    try? await service.keep(note, status: 200)
  }
}
