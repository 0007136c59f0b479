import HTTPServer

/// The cookie of a portal session.
///
/// Over TLS its name makes browsers require that it was set over TLS, by this host and for the
/// whole host (RFC 6265bis, section 4.1.3.2), so that another host cannot plant one. Without TLS it
/// is only set under this machine's own names, with a name that makes no such claim.
struct SessionCookie {
  static let name = "__Host-belfry"
  static let plainName = "belfry"

  let isSecured: Bool
  private let name: String
  private let attributes: String

  /// - Parameters:
  ///   - secured: The cookie's name over TLS.
  ///   - sameSite: The requests that carry the cookie.
  /// - Returns: `nil` if the page was loaded over a network without TLS.
  init?(
    for request: HTTPRequest, name: (secured: String, plain: String) = (Self.name, plainName),
    sameSite: String = "Strict"
  ) {
    isSecured = request.cameOverTLS
    guard isSecured || request.isAddressedToLoopback else { return nil }
    self.name = isSecured ? name.secured : name.plain
    attributes = "; Path=/; HttpOnly; SameSite=\(sameSite)" + (isSecured ? "; Secure" : "")
  }

  /// - Parameter seconds: The lifetime; `nil` keeps the cookie until the browser is closed.
  func setting(_ value: String, lasting seconds: Int? = nil) -> String {
    "\(name)=\(value)\(attributes)" + (seconds.map { "; Max-Age=\($0)" } ?? "")
  }
  var deletion: String { "\(name)=; Max-Age=0\(attributes)" }
}

extension HTTPRequest {
  /// Whether the requesting page was loaded over TLS, even if a proxy terminates it, as the browser
  /// reports. Only for requests of the same origin.
  fileprivate var cameOverTLS: Bool {
    isSecure || headers["Origin"]?.lowercased().hasPrefix("https://") == true
  }

  /// The session token in the browser's cookie; `nil` if there is none, or two, of which one was
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

  /// Whether the request comes from a page of the same origin, as the browser must confirm.
  /// Browsers send cookies with the requests of any page.
  var isOfSameOrigin: Bool {
    (headers["Sec-Fetch-Site"] != nil || headers["Origin"] != nil) && !isFromElsewhere()
  }
}
