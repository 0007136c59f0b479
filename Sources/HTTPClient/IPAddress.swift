#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An IPv4 or IPv6 address.
package struct IPAddress: Hashable, Sendable {
  /// 4 or 16 bytes in network order.
  package let bytes: [UInt8]

  /// - Returns: `nil` unless there are 4 or 16 bytes.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  /// Reads the usual text forms, without brackets or zone.
  package init?(_ text: String) {
    var four = in_addr()
    var six = in6_addr()
    if inet_pton(AF_INET, text, &four) == 1 {
      bytes = withUnsafeBytes(of: &four) { Array($0) }
    } else if inet_pton(AF_INET6, text, &six) == 1 {
      bytes = withUnsafeBytes(of: &six) { Array($0) }
    } else {
      return nil
    }
  }

  /// Reads a socket's address; `nil` for another family than IPv4 and IPv6.
  init?(_ address: UnsafeRawPointer, length: Int) {
    guard length >= MemoryLayout<sockaddr>.size else { return nil }
    switch Int32(address.load(as: sockaddr.self).sa_family) {
    case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
      let address = address.loadUnaligned(as: sockaddr_in.self).sin_addr
      bytes = withUnsafeBytes(of: address) { Array($0) }
    case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
      let address = address.loadUnaligned(as: sockaddr_in6.self).sin6_addr
      bytes = withUnsafeBytes(of: address) { Array($0) }
    default: return nil
    }
  }

  /// Whether it is an address of the public network: not of this machine, a private or local
  /// network, a group, documentation, or a way around that (IANA's special-purpose registries).
  package var isPublic: Bool {
    bytes.count == 4 ? Self.isPublic4(bytes[...]) : isPublic6
  }

  private var isPublic6: Bool {
    // Only 2000::/3 is given out; the ranges that carry an IPv4 address are as good as that one.
    if bytes.starts(with: Self.mapped) { return Self.isPublic4(bytes[12...]) }
    if bytes.starts(with: Self.nat64) { return Self.isPublic4(bytes[12...]) }
    if bytes.starts(with: [0x20, 0x02]) { return Self.isPublic4(bytes[2..<6]) }
    guard bytes[0] & 0xE0 == 0x20 else { return false }
    if bytes.starts(with: [0x20, 0x01]), bytes[2] < 2 { return false }  // 2001::/23: Teredo, tests
    if bytes.starts(with: [0x20, 0x01, 0x0D, 0xB8]) { return false }  // documentation
    return !(bytes[0] == 0x3F && bytes[1] == 0xFF && bytes[2] < 0x10)  // documentation
  }

  private static let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]
  private static let nat64: [UInt8] = [0, 0x64, 0xFF, 0x9B] + [UInt8](repeating: 0, count: 8)

  private static func isPublic4(_ bytes: ArraySlice<UInt8>) -> Bool {
    let (a, b, c) = (
      bytes[bytes.startIndex], bytes[bytes.startIndex + 1], bytes[bytes.startIndex + 2]
    )
    return switch (a, b, c) {
    case (0, _, _), (10, _, _), (127, _, _), (224..., _, _): false
    case (100, 64...127, _), (169, 254, _), (172, 16...31, _), (192, 168, _): false
    case (192, 0, 0), (192, 0, 2), (192, 88, 99), (198, 18...19, _), (198, 51, 100): false
    case (203, 0, 113): false
    default: true
    }
  }
}
