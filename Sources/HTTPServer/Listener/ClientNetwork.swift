/// Whom connections are counted for: an IPv4 address, or the 64-bit network of an IPv6 address,
/// within which one client may take as many addresses as it likes.
struct ClientNetwork: Hashable, Sendable {
  private let bits: UInt64
  private let isVersion6: Bool
  /// Whether it is this machine itself.
  let isLoopback: Bool

  init?(_ address: SocketAddress) {
    let bytes = address.addressBytes
    let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255]
    // An IPv4 client of a socket that listens on `::`.
    let bytes4 = bytes.count == 16 && bytes.starts(with: mapped) ? bytes.dropFirst(12) : bytes[...]
    switch bytes4.count {
    case 4:
      isVersion6 = false
      isLoopback = bytes4.first == 127
    case 16:
      isVersion6 = true
      isLoopback = bytes4.dropLast().allSatisfy { $0 == 0 } && bytes4.last == 1
    default: return nil
    }
    bits = bytes4.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
