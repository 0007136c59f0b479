import Cryptography
import HTTPServer
import HubCore
import Wire

/// The portal's calls besides the hub's API, in development: the local user's sign-in and the
/// emulator's control API.
///
/// Both give all rights to their caller. Therefore they accept only a page that this machine has
/// served to a local browser: the peer is this machine, the address is one of its own names, there
/// is no proxy in between, and the browser itself reports the same origin. A tunnel to the port
/// looks exactly the same, so the browser must also prove that it knows the key that the program
/// printed: from the address that was opened once, later from a secret derived from it. That secret
/// has two halves, each useless alone: browsers send a cookie to every port of this machine, and
/// scripts of an origin, port included, can read what a page stores for it.
struct PortalCalls: Sendable {
  let controller: any PortalController

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    if let refusal = Self.refusal(of: request) { return WebPageCalls.refusal(403, refusal) }
    return await WebPageCalls.answer(request, failing: "The emulator does not answer") {
      let new = try await admit(request)
      let names = request.target.pathSegments.map { $0.decoded ?? "" }
      switch (names.dropFirst().first, names.count) {
      case ("local", 2): return try await signIn(request, new)
      case ("emulator", 4...) where names[2] == "v1": return try await emulate(request, names)
      default: throw HubFailure(status: 404, message: "There is no such thing at the portal")
      }
    }
  }

  /// The header with the key from the page's address.
  private static let keyHeader = "Belfry-Portal-Key"
  /// The header with the half that the page stores.
  private static let halfHeader = "Belfry-Portal-Half"
  /// The time for which a browser is remembered, in seconds.
  private static let memory = 7 * 86_400

  /// The secret given to a browser that has shown the key.
  private struct Acquaintance {
    /// The first half, as a cookie to set.
    let cookie: String
    /// The second half, for the page.
    let half: String
  }

  /// - Returns: The secret for a new browser; `nil` for one that has it.
  /// - Throws: 401 for one that knows neither the key nor both halves.
  private func admit(_ request: HTTPRequest) async throws -> Acquaintance? {
    let key = try await controller.key()
    // Cookies do not distinguish ports, and several of these programs may run.
    let port = (request.headers["Host"] ?? "").split(separator: ":").last {
      $0.allSatisfy(\.isNumber)
    }
    let name = "belfry-local-\(port ?? "")"
    let secured = "__Host-" + name
    func half(_ whose: String) throws -> String {
      let text = "belfry portal \(whose) \(port ?? "")"
      return Base64URL.encode(
        try MessageAuthentication.code(of: Array(text.utf8), key: Array(key.utf8)))
    }
    func isSame(_ text: String?, _ wanted: String) -> Bool {
      text.map { ConstantTime.equal(Array($0.utf8), Array(wanted.utf8)) } ?? false
    }
    let (ofCookie, ofPage) = (try half("cookie"), try half("page"))
    if isSame(request.cookie(request.isSecure ? secured : name), ofCookie),
      isSame(request.headers[Self.halfHeader], ofPage)
    {
      return nil
    }
    guard isSame(request.headers[Self.keyHeader], key),
      let cookie = SessionCookie(for: request, name: (secured, name))
    else {
      throw HubFailure(
        status: 401, message: "Open the portal once by the whole address that Belfry has printed")
    }
    return Acquaintance(cookie: cookie.setting(ofCookie, lasting: Self.memory), half: ofPage)
  }

  private struct SignInReply: Encodable {
    let connectionString: String
    let hub: String
    let emulator: Bool
    /// The second half; `nil` for a page that has it.
    let half: String?
  }

  private func signIn(
    _ request: HTTPRequest, _ new: Acquaintance?
  ) async throws -> HTTPResponse {
    guard request.method == .get else {
      return HTTPResponse(.methodNotAllowed, headers: ["Allow": "GET"])
    }
    let given = try await controller.signIn(
      host: request.headers["Host"] ?? "", isSecure: request.isSecure)
    var response = try WebPageCalls.json(
      SignInReply(
        connectionString: given.connectionString, hub: given.hub, emulator: given.emulator,
        half: new?.half))
    if let new { response.headers.add("Set-Cookie", new.cookie) }
    return response
  }

  private func emulate(_ request: HTTPRequest, _ names: [String]) async throws -> HTTPResponse {
    guard request.hasJSONBody else {
      throw HubFailure(status: 415, message: "The body must be JSON")
    }
    var path = request.target.pathSegments.dropFirst(2)
      .map { String(decoding: $0.raw, as: UTF8.self) }.joined(separator: "/")
    // Of a device, of an app, or of the journal.
    let isStream =
      request.method == .get && (5...6).contains(names.count) && names.last == "events"
    guard isStream else {
      if let query = request.target.rawQuery {
        path += "?" + String(decoding: query, as: UTF8.self)
      }
      let call = EmulatorCall(method: request.method, path: path, body: request.body)
      return try await controller.emulate(call)
    }
    let position = request.headers["Last-Event-ID"] ?? request.target.queryItem("after")?.value
    let call = EmulatorCall(method: .get, path: path, body: [])
    return WebPageCalls.stream(
      try await controller.events(call, after: position.flatMap { Int($0) }.map { max($0, 0) }))
  }

  /// - Returns: The reason for a refusal; `nil` for a local page in a local browser.
  private static func refusal(of request: HTTPRequest) -> String? {
    let isNear =
      request.remoteAddress == "::1" || request.remoteAddress.hasPrefix("127.")
      || request.remoteAddress.hasPrefix("::ffff:127.")
    let forwarded = ["X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Via"]
    guard isNear, request.isAddressedToLoopback,
      forwarded.allSatisfy({ request.headers[$0] == nil })
    else {
      return
        "Only a browser on the machine that Belfry runs on may ask for this, at http://localhost or "
        + "http://127.0.0.1"
    }
    guard request.headers["Sec-Fetch-Site"] == "same-origin" else {
      return "Only the portal itself may ask for this"
    }
    return nil
  }
}
