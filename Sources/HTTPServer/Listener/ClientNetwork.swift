/// Whom a client is counted for: an IPv4 address, or the 64-bit network of an IPv6 address, within
/// which one client may take as many addresses as it likes.
package struct ClientNetwork: Hashable, Sendable, CustomStringConvertible {
  private let bytes: [UInt8]
  /// Whether it is this machine itself.
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

  /// - Returns: `nil` for what is no numeric address.
  package init?(_ address: String) {
    guard address != "localhost", let address = SocketAddress(host: address, port: 0) else {
      return nil
    }
    self.init(address)
  }

  /// `192.0.2.1` or `2001:db8:1:2/64`.
  package var description: String { text(bytes.count) }

  /// What one customer of a provider gets at most, and can make as many networks of as it likes: an
  /// IPv6 network of 48 bits.
  package var site: String { text(min(bytes.count, 6)) }

  private func text(_ count: Int) -> String {
    guard bytes.count == 8 else { return bytes.map { String($0) }.joined(separator: ".") }
    let groups = stride(from: 0, to: count, by: 2)
      .map { String(Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]), radix: 16) }
    return groups.joined(separator: ":") + "/\(8 * count)"
  }
}

extension SocketAddress {
  /// The address's bytes; 4 also for an IPv4 client of a socket that listens on `::`.
  var plainBytes: [UInt8] {
    let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
    let bytes = addressBytes
    return bytes.count == 16 && bytes.starts(with: mapped) ? Array(bytes.dropFirst(12)) : bytes
  }
}
