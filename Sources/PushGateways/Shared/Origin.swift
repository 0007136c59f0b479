/// Where HTTPS requests go: host and port (RFC 6454, with the scheme always `https`).
struct Origin: Hashable, Sendable {
  /// In lower case; an IPv6 address stands without brackets.
  let host: String
  let port: UInt16

  /// Host, and port unless it is 443, as `:authority` wants it.
  var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }

  /// `https://` and the authority.
  var text: String { "https://" + authority }
}
