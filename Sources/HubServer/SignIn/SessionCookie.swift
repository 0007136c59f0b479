import HTTPServer

/// The cookie of a session at the portal.
///
/// Over TLS its name makes browsers insist that it came over TLS, from this host itself and for all
/// of it (RFC 6265bis, section 4.1.3.2), so that no neighbour can plant one. Without TLS only this
/// machine's own names get one, under a name that does not claim that.
struct SessionCookie {
  static let name = "__Host-belfry"
  static let plainName = "belfry"

  let isSecured: Bool
  private let name: String
  private let attributes: String

  /// - Parameters:
  ///   - secured: The cookie's name over TLS.
  ///   - sameSite: Which requests carry it.
  /// - Returns: `nil` when the page came in the clear over a network.
  init?(
    for request: HTTPRequest, name: (secured: String, plain: String) = (Self.name, plainName),
    sameSite: String = "Strict"
  ) {
    isSecured = request.cameOverTLS
    guard isSecured || request.isAddressedToLoopback else { return nil }
    self.name = isSecured ? name.secured : name.plain
    attributes = "; Path=/; HttpOnly; SameSite=\(sameSite)" + (isSecured ? "; Secure" : "")
  }

  /// - Parameter seconds: `nil`: until the browser is closed.
  func setting(_ value: String, lasting seconds: Int? = nil) -> String {
    "\(name)=\(value)\(attributes)" + (seconds.map { "; Max-Age=\($0)" } ?? "")
  }
  var deletion: String { "\(name)=; Max-Age=0\(attributes)" }
}

extension HTTPRequest {
  /// Whether the page that asks came over TLS, also where a proxy has taken that off: the browser
  /// says so of its page. To be asked of requests of the same origin only.
  fileprivate var cameOverTLS: Bool {
    isSecure || headers["Origin"]?.lowercased().hasPrefix("https://") == true
  }

  /// The token of the session that the browser shows; `nil` for none, and for two, of which one was
  /// planted.
  var sessionToken: String? {
    cookie(SessionCookie.name)
      ?? (isAddressedToLoopback ? cookie(SessionCookie.plainName) : nil)
  }

  func cookie(_ name: String) -> String? {
    var found: Substring?
    for header in headers.values("Cookie") {
      for pair in header.split(separator: ";") {
        let trimmed = pair.drop { $0 == " " }
        guard trimmed.hasPrefix(name + "=") else { continue }
        guard found == nil else { return nil }
        found = trimmed.dropFirst(name.utf8.count + 1)
      }
    }
    return found.flatMap { $0.isEmpty ? nil : String($0) }
  }

  /// Whether a page of this very origin asks: the browser must say so. Cookies come with what any
  /// page makes a browser send.
  var isOfSameOrigin: Bool {
    (headers["Sec-Fetch-Site"] != nil || headers["Origin"] != nil) && !isFromElsewhere()
  }
}
