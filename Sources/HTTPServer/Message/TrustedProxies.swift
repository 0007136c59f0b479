/// The proxies whose statements about the client are trusted.
///
/// A proxy appends the address of its caller to `X-Forwarded-For`. Entries further left may have
/// been written by the client. So the list is read from the right, and the first address that is
/// not a trusted proxy is the client. From an untrusted peer the header is ignored. `Forwarded`
/// (RFC 7239) always is: of the two headers the proxy writes only one, so the other may come from
/// the client.
package struct TrustedProxies: Sendable {
  /// The error for a text that is not a network.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  private struct Network: Sendable {
    let bytes: [UInt8]
    let bits: Int

    func contains(_ address: [UInt8]) -> Bool {
      guard address.count == bytes.count else { return false }
      for index in 0..<bytes.count {
        let rest = bits - index * 8
        if rest <= 0 { return true }
        let mask: UInt8 = rest >= 8 ? 0xFF : ~(0xFF >> UInt8(rest))
        if (address[index] ^ bytes[index]) & mask != 0 { return false }
      }
      return true
    }
  }

  private let networks: [Network]

  /// Creates a set without trusted proxies.
  package init() { networks = [] }

  /// - Parameter texts: Addresses and networks: `10.0.0.7`, `10.0.0.0/8`, `2001:db8::/32`.
  package init(_ texts: [String]) throws(Fault) {
    var networks: [Network] = []
    for text in texts {
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard (1...2).contains(parts.count), let address = Self.address(String(parts[0])) else {
        throw Fault(
          description: "'\(text)' is not an address or a network such as 10.0.0.0/8")
      }
      var bits = address.count * 8
      if parts.count == 2 {
        guard let number = Int(parts[1]), (1...bits).contains(number) else {
          throw Fault(
            description: "'\(text)': what follows the slash must be 1 to \(bits)")
        }
        bits = number
      }
      networks.append(Network(bytes: address, bits: bits))
    }
    self.networks = networks
  }

  /// Whether this peer is a trusted proxy.
  package func contains(_ address: String) -> Bool {
    guard !networks.isEmpty, let bytes = Self.address(address) else { return false }
    return networks.contains { $0.contains(bytes) }
  }

  /// The address of the client that a request comes from: the peer's, unless the peer is a trusted
  /// proxy.
  package func client(of request: HTTPRequest) -> String {
    let peer = request.remoteAddress
    guard contains(peer) else { return peer }
    var nearest = peer
    for element in Self.elements(request.headers.values("X-Forwarded-For")).reversed() {
      // Entries before one that cannot be parsed are unreliable.
      guard let element = Self.plain(element) else { return nearest }
      nearest = element
      if !contains(element) { return element }
    }
    return nearest
  }

  // MARK: Headers

  /// The maximum number of entries that are read.
  private static let limit = 32

  private static func elements(_ values: [String]) -> [String] {
    var elements: [String] = []
    for value in values {
      elements += value.split(separator: ",", omittingEmptySubsequences: false).map { trimmed($0) }
    }
    return Array(elements.suffix(limit))
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    var text = text[...]
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return String(text)
  }

  /// An address without port and brackets, in the system's spelling.
  private static func plain(_ text: String) -> String? {
    var host = text
    if host.hasPrefix("[") {
      guard let end = host.firstIndex(of: "]") else { return nil }
      host = String(host[host.index(after: host.startIndex)..<end])
    } else if host.filter({ $0 == ":" }).count == 1, let colon = host.firstIndex(of: ":") {
      host = String(host[..<colon])
    }
    guard host != "localhost", let address = SocketAddress(host: host, port: 0) else { return nil }
    let bytes = address.plainBytes
    return bytes.count == 4 ? bytes.map { String($0) }.joined(separator: ".") : address.host
  }

  private static func address(_ text: String) -> [UInt8]? {
    text == "localhost" ? nil : SocketAddress(host: text, port: 0)?.plainBytes
  }
}

/// A handler that replaces a trusted proxy's address with the client's.
package struct ProxiedHandler: HTTPHandler {
  private let proxies: TrustedProxies
  private let next: any HTTPHandler

  package init(_ proxies: TrustedProxies, next: any HTTPHandler) {
    self.proxies = proxies
    self.next = next
  }

  package func next(for request: HTTPRequest) -> (any HTTPHandler)? {
    proxies.client(of: request) == request.remoteAddress ? next : nil
  }

  package func respond(to request: HTTPRequest) async -> HTTPResponse {
    await next.respond(to: resolved(request))
  }

  package func look(atHead head: HTTPRequest) -> HTTPHeadLook {
    next.look(atHead: resolved(head))
  }

  package func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
    next.reject(status, request: resolved(request))
  }

  private func resolved(_ request: HTTPRequest) -> HTTPRequest {
    request.with(remoteAddress: proxies.client(of: request))
  }
}

/// The network that a client is counted by: an IPv4 address, or the /64 network of an IPv6 address,
/// within which a client may use any number of addresses.
package struct ClientNetwork: Hashable, Sendable, CustomStringConvertible {
  private let bytes: [UInt8]
  /// Whether it is the loopback network.
  let isLoopback: Bool

  init?(_ address: SocketAddress) {
    let bytes = address.plainBytes
    switch bytes.count {
    case 4: isLoopback = bytes.first == 127
    case 16: isLoopback = bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
    default: return nil
    }
    self.bytes = Array(bytes.prefix(8))
  }

  /// - Returns: `nil` if the text is not a numeric address.
  package init?(_ address: String) {
    guard address != "localhost", let address = SocketAddress(host: address, port: 0) else {
      return nil
    }
    self.init(address)
  }

  /// The text, such as `192.0.2.1` or `2001:db8:1:2/64`.
  package var description: String { text(bytes.count) }

  /// The largest network of one customer of a provider, who can form any number of networks within
  /// it: an IPv6 /48.
  package var site: String { text(min(bytes.count, 6)) }

  private func text(_ count: Int) -> String {
    guard bytes.count == 8 else { return bytes.map { String($0) }.joined(separator: ".") }
    let groups = stride(from: 0, to: count, by: 2)
      .map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }
    return groups.joined(separator: ":") + "/\(8 * count)"
  }
}

extension SocketAddress {
  /// The address's bytes: 4 also for an IPv4 client of a socket that listens on `::`.
  var plainBytes: [UInt8] {
    let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    let bytes = addressBytes
    return bytes.count == 16 && bytes.starts(with: mapped) ? Array(bytes.dropFirst(12)) : bytes
  }
}
