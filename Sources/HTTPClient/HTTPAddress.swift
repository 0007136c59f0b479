import CCurl

/// The parts of a URL as they will be used: read by the same reader that sends the call, so that
/// what was checked and what is connected to cannot differ.
package struct HTTPAddress: Hashable, Sendable {
  /// In lower case.
  package let scheme: String
  /// In lower case; an IPv6 address stands without brackets.
  package let host: String
  /// The scheme's default where the URL names none.
  package let port: UInt16
  /// With its leading slash, as it stands.
  package let path: String
  /// Without the question mark; `nil` where there is none.
  package let query: String?

  /// - Returns: `nil` for anything that is no absolute `http` or `https` URL, that holds a user's
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

  /// Whether a path has a segment `.` or `..`, also with its dots percent-encoded. Parts of paths are
  /// made of handles that devices bring: none may lead to another resource of the same host.
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

  /// Whether the host is one of these names, or below one that begins with a dot
  /// (`.notify.windows.com`). A name with a closing dot is none of them.
  package func isHost(in names: some Sequence<String>) -> Bool { Self.isHost(host, in: names) }

  /// As ``isHost(in:)``, for a host in lower case.
  package static func isHost(_ host: String, in names: some Sequence<String>) -> Bool {
    names.contains {
      $0.hasPrefix(".") ? host.hasSuffix($0) && host.utf8.count > $0.utf8.count : host == $0
    }
  }
}
