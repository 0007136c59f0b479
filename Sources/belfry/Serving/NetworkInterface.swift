import Foundation
import HTTPServer

/// The addresses that this machine has for others.
enum NetworkInterface {
  /// In numbers, without loopback and link-local ones, in the system's order.
  static func addresses(withIPv6: Bool) -> [String] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    var found: [String] = []
    for entry in sequence(first: list, next: { $0?.pointee.ifa_next }) {
      guard let entry, let address = entry.pointee.ifa_addr,
        entry.pointee.ifa_flags & UInt32(IFF_UP) != 0,
        entry.pointee.ifa_flags & UInt32(IFF_LOOPBACK) == 0
      else { continue }
      let isIPv4 = Int32(address.pointee.sa_family) == AF_INET
      guard isIPv4 || withIPv6 && Int32(address.pointee.sa_family) == AF_INET6 else { continue }
      let length = isIPv4 ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      guard
        getnameinfo(
          address, socklen_t(length), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      else { continue }
      let name = String(
        decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      if !name.hasPrefix("fe80:"), !name.hasPrefix("169.254."), !found.contains(name) {
        found.append(name)
      }
    }
    return found
  }
}

extension HTTPListener {
  var isEverywhere: Bool { ["0.0.0.0", "::"].contains(host) }

  /// Without a slash at its end. What listens everywhere is reached here by the loopback address: not
  /// by a name, which may not resolve.
  var url: String { url(at: isEverywhere ? "127.0.0.1" : host) }

  func url(at host: String) -> String {
    "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }
}
