/// A complete request. A class, since every function on the way to its handler holds it.
package final class HTTPRequest: Sendable {
  package let method: HTTPMethod
  package let target: HTTPTarget
  package let headers: HTTPHeaders
  /// The body without chunk framing, at most `HTTPConfiguration.maxBodyBytes`; empty if there is
  /// none.
  package let body: [UInt8]
  /// The peer's numeric address without port: `127.0.0.1`, `::1`; empty if unknown.
  package let remoteAddress: String
  /// Whether it was received over TLS.
  package let isSecure: Bool
  /// The connection's number, counted by the listener from 1; 0 for a request created in code.
  package let connection: UInt64

  /// Creates a request in code, to test handlers without a socket.
  package init(
    method: HTTPMethod, target: HTTPTarget, headers: HTTPHeaders = [:], body: [UInt8] = [],
    remoteAddress: String = "", isSecure: Bool = false, connection: UInt64 = 0
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
    self.remoteAddress = remoteAddress
    self.isSecure = isSecure
    self.connection = connection
  }

  /// The same request from another address, or received otherwise.
  package func with(remoteAddress: String? = nil, isSecure: Bool? = nil) -> HTTPRequest {
    HTTPRequest(
      method: method, target: target, headers: headers, body: body,
      remoteAddress: remoteAddress ?? self.remoteAddress, isSecure: isSecure ?? self.isSecure,
      connection: connection)
  }
}

/// A request method, spelled as on the wire; methods are case-sensitive (RFC 9110, section 9.1).
package struct HTTPMethod: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
  package let rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }
  package init(stringLiteral value: String) { rawValue = value }

  package static let get: Self = "GET"
  package static let head: Self = "HEAD"
  package static let post: Self = "POST"
  package static let put: Self = "PUT"
  package static let patch: Self = "PATCH"
  package static let delete: Self = "DELETE"
  package static let options: Self = "OPTIONS"
}

/// Checks that keep foreign web pages away from a listener for local programs: a browser runs on
/// this machine too, and sends whatever any page makes it send.
extension HTTPRequest {
  /// Whether the request was addressed to this machine by a name that nobody else can assign. A
  /// page can make its own name resolve to this machine ("DNS rebinding"); then `Host` is that
  /// name.
  package var isAddressedToLoopback: Bool {
    let host = (headers["Host"] ?? "").lowercased()
    if host == "[::1]" || host.hasPrefix("[::1]:") { return true }
    let name = host.prefix { $0 != ":" }
    return name == "127.0.0.1" || name == "localhost" || name.hasSuffix(".localhost")
  }

  /// Whether a browser sent it for a page of another origin. Other programs send neither header.
  ///
  /// - Parameter allowsNavigation: Whether a user may open the URL in a browser.
  package func isFromElsewhere(allowsNavigation: Bool = false) -> Bool {
    let site = headers["Sec-Fetch-Site"]
    switch site {
    case nil, "same-origin": break
    case "none" where allowsNavigation && method == .get: break
    default: return true
    }
    guard let origin = headers["Origin"]?.lowercased() else { return false }
    let host = (headers["Host"] ?? "").lowercased()
    if origin == (isSecure ? "https://" : "http://") + host { return false }
    // Behind a proxy that terminates TLS, the browser's own statement about the page suffices.
    return site != "same-origin" || origin != "https://" + host
  }

  /// Whether the body has a type that foreign pages cannot send without a preflight; a request
  /// without a body needs none.
  package var hasJSONBody: Bool {
    guard let type = headers["Content-Type"] else { return body.isEmpty }
    let media = type.prefix { $0 != ";" }.lowercased()
    return media.filter { $0 != " " && $0 != "\t" } == "application/json"
  }
}
