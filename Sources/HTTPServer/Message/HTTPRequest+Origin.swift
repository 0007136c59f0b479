/// What keeps web pages from elsewhere away from a listener for programs of this machine. A browser
/// runs on this machine too, and sends what any page makes it send.
extension HTTPRequest {
  /// Whether the request was addressed to this machine by a name that no one else can give out. A page
  /// can have its own name lead here ("DNS rebinding"); then `Host` is that name.
  package var isAddressedToLoopback: Bool {
    let host = (headers["Host"] ?? "").lowercased()
    if host == "[::1]" || host.hasPrefix("[::1]:") { return true }
    let name = host.prefix { $0 != ":" }
    return name == "127.0.0.1" || name == "localhost" || name.hasSuffix(".localhost")
  }

  /// Whether a browser sent it for a page of another origin. Programs send neither header.
  ///
  /// - Parameter allowsNavigation: Whether a person may open the address in a browser.
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
    // Behind a proxy that has taken TLS off: what the browser says of the page itself suffices.
    return site != "same-origin" || origin != "https://" + host
  }

  /// Whether the body has a type that pages elsewhere cannot send without asking first; a request
  /// without a body needs none.
  package var hasJSONBody: Bool {
    guard let type = headers["Content-Type"] else { return body.isEmpty }
    let media = type.prefix { $0 != ";" }.lowercased()
    return media.filter { $0 != " " && $0 != "\t" } == "application/json"
  }
}
