import Authentication
import Cryptography
import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import Wire

/// The sign-in at an OpenID provider: `/$portal/oidc/start` redirects the browser to it, and the
/// provider redirects back to `/$portal/oidc/callback`. The portal itself displays errors.
struct ProviderPages: Sendable {
  let signIn: OperatorSignIn
  let provider: OpenIDProvider
  let journal: SignInJournal

  /// The reason why no session began, for the portal's sign-in page (`pages/signin.js`). It is part
  /// of the reply, never of the URL, so that no link can make the portal display a message.
  struct Problem: Error, Encodable {
    enum Kind: String, Encodable {
      /// The request is not over TLS, or the browser does not report its origin.
      case insecure
      /// The browser has no attempt in progress that matches the reply.
      case lost
      case late
      case declined, refused, unreachable, client, code, token, clock
      /// The provider did not ask the user to authenticate again.
      case stale
      /// The user is a different one from the signed-in operator.
      case other
      /// The user is not in the operator file.
      case unknown
      case busy
    }

    let kind: Kind
    var detail: String?
    /// The user's entry for the operator file.
    var subject: String?
    var email: String?
    var to: String?
    var isFresh = false

    var status: HTTPStatus {
      switch kind {
      case .unreachable, .client: 502
      case .busy: .tooManyRequests
      case .insecure, .declined, .refused, .unknown, .other, .stale: .forbidden
      case .lost, .late, .code, .token, .clock: .badRequest
      }
    }
  }

  // MARK: There

  func start(_ request: HTTPRequest) async -> HTTPResponse {
    let isFresh = request.target.queryItem("fresh")?.value == "1"
    let to = ProviderAttempt.place(request.target.queryItem("to")?.value)
    do {
      // Browsers send it only to pages over TLS or of this machine. No page of another origin leads
      // here.
      guard let site = request.headers["Sec-Fetch-Site"], ["same-origin", "none"].contains(site),
        let (cookie, redirect) = Self.place(of: request)
      else { throw Problem(kind: .insecure) }
      let attempt = try ProviderAttempt(
        to: to, isFresh: isFresh, session: request.sessionToken.map(OperatorSignIn.id(of:)),
        at: signIn.clock.now())
      let address = try await provider.address(
        for: attempt.attempt, redirect: redirect, isFresh: isFresh)
      return Self.moved(
        to: address, cookie.setting(attempt.text, lasting: ProviderAttempt.lifetime))
    } catch {
      return await page(of: error, request, to: to, isFresh: isFresh)
    }
  }

  // MARK: And back

  func callback(_ request: HTTPRequest) async -> HTTPResponse {
    do {
      guard let (cookie, redirect) = Self.place(of: request) else {
        throw Problem(kind: .insecure)
      }
      let (secured, plain) = ProviderAttempt.cookie
      let text =
        request.cookie(secured)
        ?? (request.isAddressedToLoopback ? request.cookie(plain) : nil)
      // A reply that does not match this browser's attempt leaves the attempt unchanged.
      guard let attempt = text.flatMap(ProviderAttempt.init),
        let state = request.target.queryItem("state")?.value,
        ConstantTime.equal(Array(state.utf8), Array(attempt.attempt.state.utf8))
      else { throw Problem(kind: .lost) }
      var response: HTTPResponse
      do {
        let token = try await session(attempt, request, redirect: redirect)
        response = Self.moved(to: attempt.to, token)
      } catch {
        response = await page(of: error, request, to: attempt.to, isFresh: attempt.isFresh)
      }
      response.headers.add("Set-Cookie", cookie.deletion)
      return response
    } catch {
      return await page(of: error, request)
    }
  }

  /// - Returns: The cookie of the new session.
  private func session(
    _ attempt: ProviderAttempt, _ request: HTTPRequest, redirect: String
  ) async throws -> String {
    let age = signIn.clock.now().timeIntervalSince(attempt.startedAt)
    guard (-60..<Double(ProviderAttempt.lifetime)).contains(age) else {
      throw Problem(kind: .late)
    }
    let target = request.target
    guard try await provider.isMine(target.queryItem("iss")?.value) else {
      throw Problem(kind: .lost)
    }
    if let error = target.queryItem("error")?.value {
      throw Problem(
        kind: error == "access_denied" ? .declined : .refused, detail: OpenIDProvider.word(error))
    }
    guard let code = target.queryItem("code")?.value, (1...4096).contains(code.utf8.count) else {
      throw Problem(kind: .refused)
    }
    let identity = try await identity(code, attempt, request, redirect)
    let user = try await self.user(identity)
    var confirmedAt = Date.distantPast
    let now = signIn.clock.now()
    if let shown = identity.authenticatedAt, shown > now.addingTimeInterval(-86_400) {
      confirmedAt = min(shown, now)
    }
    if attempt.isFresh {
      guard confirmedAt >= attempt.startedAt.addingTimeInterval(-provider.configuration.clockSkew)
      else { throw Problem(kind: .stale) }
      if let session = attempt.session, let before = try await signIn.user(ofSession: session),
        before != user
      {
        throw Problem(kind: .other)
      }
    }
    guard let fingerprint = await signIn.fingerprint(of: user),
      let cookie = SessionCookie(navigation: request)
    else { throw Problem(kind: .insecure) }
    let (token, one) = try await signIn.begin(
      user, fingerprint, confirmedAt: confirmedAt, replacing: attempt.session)
    await journal.signedIn(one, request)
    return cookie.setting(token)
  }

  private func identity(
    _ code: String, _ attempt: ProviderAttempt, _ request: HTTPRequest, _ redirect: String
  ) async throws -> OpenIDIdentity {
    // Each invalid code costs a call of the provider.
    let site = ClientNetwork(request.remoteAddress)?.site ?? request.remoteAddress
    // Each attempt counts separately, whatever its code: a password tried twice at once is checked
    // once, but a code is sent to the provider each time.
    let guess = "\(UInt64.random(in: .min ... .max)) \(code)"
    let ticket = try await signIn.reserve(
      "oidc \(site)", guess: guess, from: request.remoteAddress)
    do {
      let identity = try await provider.identity(
        code: code, attempt.attempt, redirect: redirect)
      await signIn.finish(ticket, as: .right)
      return identity
    } catch {
      if case .code = error {
        await signIn.finish(ticket, as: .wrong)
      } else {
        await signIn.finish(ticket, as: .unknown)
      }
      throw error
    }
  }

  /// The operator with this identity: by subject, or by email address if the provider has verified
  /// it.
  private func user(_ identity: OpenIDIdentity) async throws(Problem) -> UserName {
    let subject = UserName(subject: identity.subject)
    let email = identity.isEmailVerified ? identity.email.flatMap(UserName.init(email:)) : nil
    for user in [subject, email].compactMap(\.self) where await signIn.roles(of: user) != nil {
      return user
    }
    throw Problem(
      kind: .unknown, detail: email == nil && identity.email != nil ? "unverified" : nil,
      subject: subject?.key, email: email?.key)
  }

  // MARK: Replies

  /// The cookie of an attempt, and the redirect URL for the provider; `nil` if the page was loaded
  /// over a network without TLS.
  private static func place(of request: HTTPRequest) -> (SessionCookie, redirect: String)? {
    guard let host = request.headers["Host"], !host.isEmpty,
      let cookie = SessionCookie(
        navigation: request, name: ProviderAttempt.cookie, sameSite: "Lax")
    else { return nil }
    return (
      cookie, "\(cookie.isSecured ? "https" : "http")://\(host)\(Portal.path)oidc/callback"
    )
  }

  private static func moved(to address: String, _ cookie: String) -> HTTPResponse {
    var response = HTTPResponse(
      HTTPStatus(rawValue: 303), headers: ["Location": address, "Cache-Control": "no-store"])
    response.headers.add("Set-Cookie", cookie)
    return response
  }

  /// The portal, displaying the error.
  private func page(
    of error: any Error, _ request: HTTPRequest, to: String? = nil, isFresh: Bool = false
  ) async -> HTTPResponse {
    var problem = Self.problem(error)
    problem.to = to
    problem.isFresh = isFresh
    await journal.failed(problem, error, request)
    guard let page = WebFile.portal["portal.html"], let json = try? JSONEncoder().encode(problem)
    else { return HTTPResponse(problem.status) }
    let content = String(decoding: json, as: UTF8.self).xmlAttributeEscaped
    let html = String(decoding: page.bytes, as: UTF8.self).replacing(
      "</head>", with: "<meta name=\"belfry-problem\" content=\"\(content)\">\n</head>")
    var response = HTTPResponse(
      problem.status, text: html, contentType: "text/html; charset=utf-8")
    response.headers["Cache-Control"] = "no-store"
    return response
  }

  private static func problem(_ error: any Error) -> Problem {
    switch error {
    case let problem as Problem: problem
    case let fault as OpenIDFault:
      switch fault {
      case .unreachable(let why): Problem(kind: .unreachable, detail: why)
      case .client(let why): Problem(kind: .client, detail: why)
      case .code(let why): Problem(kind: .code, detail: why)
      case .refused(let why): Problem(kind: .refused, detail: why)
      case .token(.expired), .token(.notYetValid): Problem(kind: .clock, detail: "\(fault)")
      case .token, .nonce: Problem(kind: .token, detail: "\(fault)")
      }
    case let failure as HubFailure where failure.status == 429:
      Problem(kind: .busy, detail: failure.message)
    case let failure as HubFailure: Problem(kind: .refused, detail: failure.message)
    default: Problem(kind: .refused)
    }
  }
}

extension SessionCookie {
  /// A cookie for a page that a user opens, which has no `Origin` to tell the scheme: pages without
  /// TLS are served only to this machine, so over a network TLS is assumed. Without TLS browsers
  /// would reject the cookie.
  init?(
    navigation request: HTTPRequest,
    name: (secured: String, plain: String) = (Self.name, Self.plainName),
    sameSite: String = "Strict"
  ) {
    let isSecure = request.isSecure || !request.isAddressedToLoopback
    self.init(for: request.with(isSecure: isSecure), name: name, sameSite: sameSite)
  }
}
