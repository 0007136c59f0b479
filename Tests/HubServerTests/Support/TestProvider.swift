import Cryptography
import Foundation
import HTTPServer
import Synchronization
import Wire

/// An OpenID provider on a free port of this machine. It checks what a provider checks (client,
/// secret, redirect, PKCE, each code once) and can be made to lie.
final class TestProvider: HTTPHandler {
  struct Person: Sendable {
    var subject = "248289761001"
    var email: String?
    var isVerified = false
    var authenticatedAt: Date?
  }

  struct Manner: Sendable {
    /// What it says of itself in place of the truth.
    var issuer: String?
    /// Claims in place of the right ones; `null` leaves one out.
    var claims: [String: String] = [:]
    var signsWithAnotherKey = false
    var namesItself = false
    /// Its keys are others, and stand elsewhere.
    var hasMovedKeys = false
    /// The token endpoint's answer.
    var error: String?
  }

  private struct State {
    var manner = Manner()
    var codes: [String: (person: Person, query: [String: String])] = [:]
    var calls = 0
    var listener: HTTPListener?
  }

  static let client = "belfry"
  static let secret = "s3cret:/+ %"
  private let state = Mutex(State())
  private let keys: (old: P256PrivateKey, new: P256PrivateKey)
  private let now: @Sendable () -> Date

  init(now: @escaping @Sendable () -> Date) throws {
    keys = (try P256PrivateKey(), try P256PrivateKey())
    self.now = now
    let listener = try HTTPListener(HTTPConfiguration(), handler: self)
    state.withLock { $0.listener = listener }
  }

  var manner: Manner {
    get { state.withLock { $0.manner } }
    set { state.withLock { $0.manner = newValue } }
  }
  /// How often a code was brought.
  var calls: Int { state.withLock { $0.calls } }
  var issuer: String { "http://127.0.0.1:\(state.withLock { $0.listener?.port ?? 0 })" }

  /// Where its key stands.
  private var place: (path: String, name: String, key: P256PrivateKey) {
    manner.hasMovedKeys ? ("/new-keys", "k2", keys.new) : ("/keys", "k1", keys.old)
  }

  func stop() async {
    let listener = state.withLock { $0.listener }
    await listener?.stop()
  }

  /// What the provider does when the person has signed in on its page.
  /// - Returns: The query with which it sends the browser back.
  func admit(_ person: Person, _ query: [String: String]) -> [String: String] {
    let code = "code-\(UInt64.random(in: 0 ... .max))"
    state.withLock { $0.codes[code] = (person, query) }
    return ["code": code, "state": query["state"] ?? ""]
  }

  func respond(to request: HTTPRequest) async -> HTTPResponse {
    switch String(decoding: request.target.rawPath, as: UTF8.self) {
    case "/.well-known/openid-configuration":
      return json(
        """
        {"issuer":"\(manner.issuer ?? issuer)","authorization_endpoint":"\(issuer)/authorize?tenant=1",
        "token_endpoint":"\(issuer)/token","jwks_uri":"\(issuer)\(place.path)",
        "authorization_response_iss_parameter_supported":\(manner.namesItself)}
        """)
    case place.path:
      guard let point = try? place.key.publicKey().point else { return HTTPResponse(500) }
      return json(
        """
        {"keys":[{"kty":"EC","crv":"P-256","kid":"\(place.name)","x":"\(Base64URL.encode(Array(point[1...32])))",
        "y":"\(Base64URL.encode(Array(point[33...])))"}]}
        """)
    case "/token": return token(request)
    default: return HTTPResponse(.notFound)
    }
  }

  func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse { HTTPResponse(status) }

  private func token(_ request: HTTPRequest) -> HTTPResponse {
    let form = HTTPTarget("/?" + String(decoding: request.body, as: UTF8.self))
    func field(_ name: String) -> String? { form.queryItem(name)?.value }
    let pair = "belfry:" + "s3cret%3A%2F%2B+%25"
    guard request.headers["Authorization"] == "Basic " + Base64.encode(Array(pair.utf8)) else {
      return json(#"{"error":"invalid_client"}"#, .unauthorized)
    }
    if let error = manner.error { return json(#"{"error":"\#(error)"}"#, .badRequest) }
    let found = state.withLock { state in
      state.calls += 1
      return state.codes.removeValue(forKey: field("code") ?? "")
    }
    guard let found, field("grant_type") == "authorization_code",
      field("redirect_uri") == found.query["redirect_uri"],
      let verifier = field("code_verifier"), found.query["code_challenge_method"] == "S256",
      Base64URL.encode(Digest.sha256(Array(verifier.utf8))) == found.query["code_challenge"],
      let token = try? token(found.person, nonce: found.query["nonce"] ?? "")
    else { return json(#"{"error":"invalid_grant"}"#, .badRequest) }
    return json(#"{"access_token":"x","token_type":"Bearer","id_token":"\#(token)"}"#)
  }

  private func token(_ person: Person, nonce: String) throws -> String {
    let time = Int(now().timeIntervalSince1970)
    var claims = [
      "iss": "\"\(issuer)\"", "aud": "\"\(Self.client)\"", "sub": "\"\(person.subject)\"",
      "nonce": "\"\(nonce)\"", "iat": "\(time)", "exp": "\(time + 300)",
    ]
    claims["email"] = person.email.map { "\"\($0)\"" }
    claims["email_verified"] = person.email.map { _ in "\(person.isVerified)" }
    claims["auth_time"] = person.authenticatedAt.map { "\(Int($0.timeIntervalSince1970))" }
    claims.merge(manner.claims) { $1 }
    let text = claims.filter { $0.value != "null" }.map { "\"\($0.key)\":\($0.value)" }
    return try CompactJWS.sign(
      header: Array(#"{"alg":"ES256","kid":"\#(place.name)"}"#.utf8),
      claims: Array("{\(text.joined(separator: ","))}".utf8),
      with: manner.signsWithAnotherKey ? try P256PrivateKey() : place.key)
  }

  private func json(_ text: String, _ status: HTTPStatus = .ok) -> HTTPResponse {
    HTTPResponse(status, text: text, contentType: "application/json")
  }
}
