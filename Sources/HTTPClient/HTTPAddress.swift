import CCurl

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The components of a URL, parsed by the same parser that sends the call, so that the checked
/// address and the one connected to cannot differ.
package struct HTTPAddress: Hashable, Sendable {
  /// In lower case.
  package let scheme: String
  /// In lower case; an IPv6 address is without brackets.
  package let host: String
  /// The scheme's default where the URL names none.
  package let port: UInt16
  /// With its leading slash, verbatim.
  package let path: String
  /// Without the question mark; `nil` where there is none.
  package let query: String?

  /// - Returns: `nil` for anything but an absolute `http` or `https` URL, and for one with a user
  ///   name, a fragment, blanks, control characters, or `.` and `..` in its path.
  package init?(_ url: String) {
    guard url.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "\\") }),
      !url.utf8.contains(UInt8(ascii: "#")), let handle = curl_url()
    else { return nil }
    defer { curl_url_cleanup(handle) }
    let flags = UInt32(CURLU_PATH_AS_IS | CURLU_DISALLOW_USER)
    guard curl_url_set(handle, CURLUPART_URL, url, flags) == CURLUE_OK,
      let scheme = Self.part(handle, CURLUPART_SCHEME)?.lowercased(),
      scheme == "https" || scheme == "http",
      let host = Self.part(handle, CURLUPART_HOST)?.lowercased(), !host.isEmpty,
      let port = Self.part(handle, CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT)).flatMap(UInt16.init),
      port > 0, let path = Self.part(handle, CURLUPART_PATH), !Self.hasDotSegment(path.utf8)
    else { return nil }
    self.scheme = scheme
    self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    self.port = port
    self.path = path
    query = Self.part(handle, CURLUPART_QUERY)
  }

  /// Whether a path has a segment `.` or `..`, also with its dots percent-encoded. Parts of paths
  /// are made of handles from devices: none may lead to another resource of the same host.
  package static func hasDotSegment(_ path: some Collection<UInt8>) -> Bool {
    guard path.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }) else {
      return false
    }
    let end = path.firstIndex(of: UInt8(ascii: "?")) ?? path.endIndex
    return path[..<end].split(separator: UInt8(ascii: "/")).contains { segment in
      guard segment.count <= 6 else { return false }
      let dots = String(decoding: segment, as: UTF8.self).lowercased()
        .replacing("%2e", with: ".")
      return dots == "." || dots == ".."
    }
  }

  private static func part(
    _ handle: OpaquePointer, _ part: CURLUPart, _ flags: UInt32 = 0
  ) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(handle, part, &text, flags) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }

  /// Whether the host is this machine by its loopback name or address.
  package var isOfThisMachine: Bool {
    host == "localhost" || host == "::1"
      || IPAddress(host).map { $0.bytes.count == 4 && $0.bytes[0] == 127 } == true
  }

  /// Whether the host is one of these names, or a subdomain of one that begins with a dot
  /// (`.notify.windows.com`). A name with a trailing dot matches none of them.
  package func isHost(in names: some Sequence<String>) -> Bool { Self.isHost(host, in: names) }

  /// As ``isHost(in:)``, for a host in lower case.
  package static func isHost(_ host: String, in names: some Sequence<String>) -> Bool {
    names.contains {
      $0.hasPrefix(".") ? host.hasSuffix($0) && host.utf8.count > $0.utf8.count : host == $0
    }
  }
}

/// An IPv4 or IPv6 address.
package struct IPAddress: Hashable, Sendable {
  /// 4 or 16 bytes in network order.
  package let bytes: [UInt8]

  /// - Returns: `nil` unless there are 4 or 16 bytes.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  /// Parses the usual text forms, without brackets or zone.
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
  /// network, a multicast group, documentation, or a tunnel or translation to such (IANA's
  /// special-purpose registries), and not a cloud's internal services.
  package var isPublic: Bool {
    bytes.count == 4 ? Self.isPublic4(bytes[...]) : isPublic6
  }

  private var isPublic6: Bool {
    // Only 2000::/3 is allocated; a range that embeds an IPv4 address is as public as that address.
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
    // Azure's machines reach their host's services there, though it is in public space
    // (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
    if bytes.elementsEqual([168, 63, 129, 16]) { return false }
    return switch (a, b, c) {
    case (0, _, _), (10, _, _), (127, _, _), (224..., _, _): false
    case (100, 64...127, _), (169, 254, _), (172, 16...31, _), (192, 168, _): false
    case (192, 0, 0), (192, 0, 2), (192, 88, 99), (198, 18...19, _), (198, 51, 100): false
    case (203, 0, 113): false
    default: true
    }
  }
}
