package import HTTPClient
import Wire

/// A request to the proxy: `CONNECT host:port` (RFC 9110, section 9.3.6).
struct ConnectRequest: Sendable, Equatable {
  let host: ProxyHost
  let port: UInt16

  /// Maximum size of a head in bytes.
  static let limit = 8 * 1024

  /// Parses a request's head.
  ///
  /// The request line alone counts: RFC 9112, section 3.2, puts its target above `Host`.
  ///
  /// - Parameter head: Up to the empty line, without it.
  init(_ head: ArraySlice<UInt8>) throws(ProxyRefusal) {
    let line = head.prefix { $0 != 0x0D }
    guard head.allSatisfy({ $0 == 0x0D || $0 == 0x0A || $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }),
      let text = String(validating: line, as: UTF8.self)
    else { throw .malformed }
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else {
      throw .malformed
    }
    guard words[0] == "CONNECT" else { throw .onlyConnect }
    // The last colon, since the address may be of IPv6.
    guard let colon = words[1].lastIndex(of: ":"), let host = ProxyHost(words[1][..<colon]),
      host.isBracketed == words[1].hasPrefix("[")
    else { throw .malformed }
    let digits = words[1][words[1].index(after: colon)...]
    guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy(\.isDigit),
      let port = UInt16(digits), port > 0
    else { throw .malformed }
    self.host = host
    self.port = port
  }
}

/// The host of a tunnel: a name, or an address in whatever notation.
package enum ProxyHost: Hashable, Sendable, CustomStringConvertible {
  /// In lower case, without a trailing dot.
  case name(String)
  case address(IPAddress)

  /// Parses a name, or an address: that of IPv6 with brackets or without.
  package init?(_ text: some StringProtocol) {
    if text.hasPrefix("[") || text.contains(":") {
      let inner =
        text.hasPrefix("[") && text.hasSuffix("]") ? text.dropFirst().dropLast() : text[...]
      guard let address = IPAddress(String(inner)), address.bytes.count == 16 else { return nil }
      self = .address(address)
    } else if let address = IPAddress(String(text)) {
      self = .address(address)
    } else {
      let name = text.hasSuffix(".") ? text.dropLast() : text[...]
      let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      // Resolvers take a name that ends in a number for an address (0x7f.1), so it is no name:
      // https://url.spec.whatwg.org/#ends-in-a-number-checker
      guard name.utf8.count <= 253,
        labels.allSatisfy({ (1...63).contains($0.count) && $0.allSatisfy(\.isBase64URL) }),
        let first = labels.last?.first, !first.isDigit
      else { return nil }
      // In ASCII by now: U+212A would become a `k`.
      self = .name(name.lowercased())
    }
  }

  /// Whether a request target has it in brackets.
  fileprivate var isBracketed: Bool {
    if case .address(let address) = self { address.bytes.count == 16 } else { false }
  }

  /// Whether it names this machine, where the stand-ins are.
  var isOfThisMachine: Bool {
    self == .name("localhost") || self == ProxyHost("127.0.0.1") || self == ProxyHost("::1")
  }

  package var description: String {
    switch self {
    case .name(let name): name
    case .address(let address) where address.bytes.count == 4:
      address.bytes.map(String.init).joined(separator: ".")
    case .address(let address):
      stride(from: 0, to: 16, by: 2).map {
        String(Int(address.bytes[$0]) << 8 | Int(address.bytes[$0 + 1]), radix: 16)
      }.joined(separator: ":")
    }
  }
}

/// The reply to a request that gets no tunnel. The text is the reason phrase as well, since that is
/// all that most clients show of it.
struct ProxyRefusal: Error, Sendable, Equatable {
  let status: Int
  let text: String
  /// The host that only `--allow` would let through.
  var forbiddenHost: ProxyHost?

  static let malformed = Self(
    status: 400, text: "this is a proxy for HTTPS: it wants CONNECT host:port HTTP/1.1")
  static let onlyConnect = Self(
    status: 405, text: "this is a proxy for HTTPS: CONNECT only, plain HTTP is not forwarded")
  static let silent = Self(status: 408, text: "no CONNECT request came in time")
  static let tooLong = Self(status: 431, text: "the head of the request is too long")
  static let full = Self(status: 503, text: "too many connections")

  static func forbidden(_ host: ProxyHost) -> Self {
    .init(
      status: 403,
      text: "\(host) is not allowed: no push service with a stand-in, nor given by --allow",
      forbiddenHost: host)
  }

  static func forbidden(_ host: ProxyHost, port: UInt16) -> Self {
    .init(status: 403, text: "port \(port) of \(host) is not served here")
  }

  static func unreachable(_ host: ProxyHost, _ reason: String) -> Self {
    .init(status: 502, text: "\(host) cannot be reached: \(reason)")
  }

  static func late(_ host: ProxyHost) -> Self {
    .init(status: 504, text: "\(host) did not answer in time")
  }

  var reply: [UInt8] {
    let body = "belfry: " + text + "\n"
    return Array(
      """
      HTTP/1.1 \(status) \(text)\r
      Content-Type: text/plain; charset=utf-8\r
      Content-Length: \(body.utf8.count)\r
      Connection: close\r
      \r
      \(body)
      """.utf8)
  }
}
