import Wire

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// What a server asks of a token (spec `sas.md` section 4).
extension SharedAccessSignature {
  /// The policy names to look for, the likeliest first: `skn` decoded, then with `+` read as a blank.
  package var keyNameCandidates: [String] {
    guard rawKeyName.utf8.contains(UInt8(ascii: "+")) else { return [keyName] }
    let blanks = String(
      decoding: rawKeyName.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }, as: UTF8.self)
    return [keyName, blanks.percentDecoded]
  }

  /// Whether the holder of this key made the token; takes equally long for every wrong signature.
  package func isSigned(with key: String) -> Bool {
    let right = Self.sign(rawResource: rawResource, rawExpiry: rawExpiry, key: key)
    return isEqualInConstantTime(right, signature)
  }

  package func isExpired(at now: Date) -> Bool { expiresAt <= now }

  /// Whether the token's resource is the requested one or contains it (spec `sas.md` 4.1).
  ///
  /// Some clients sign the URL as they send it, with its percent-escapes, others the decoded one: the
  /// token's path is compared as it stands and decoded once more. Paths are cut into segments first,
  /// so that an escaped slash never makes one.
  ///
  /// - Parameters:
  ///   - path: The path of the request as received, with or without query.
  ///   - hosts: The names under which the server may be addressed, among them that of the request;
  ///     ports and letter case play no role.
  package func covers(path: String, hosts: some Sequence<String>) -> Bool {
    let resource = Array(rawResource.percentDecoded.lowercased().utf8)
    var authority = resource[...]
    if let colon = resource.firstIndex(of: UInt8(ascii: ":")),
      resource[(colon + 1)...].starts(with: "//".utf8)
    {
      let scheme = resource[..<colon]
      guard Self.schemes.contains(where: { scheme.elementsEqual($0.utf8) }) else { return false }
      authority = resource[(colon + 3)...]
    }
    let end = authority.firstIndex { $0 == Self.slash || Self.endsPath($0) } ?? authority.endIndex
    let host = Self.withoutPort(authority[..<end])
    let isHost = hosts.contains {
      Self.withoutPort(Array($0.lowercased().utf8)[...]).elementsEqual(host)
    }
    guard isHost else { return false }
    let asked = Self.segments(Array(path.lowercased().utf8)[...])
    let covered = Self.segments(authority[end...])
    guard !(asked + covered).contains(where: Self.isDots) else { return false }
    let decoded = Self.decoded(asked)
    return decoded.starts(with: covered)
      || Self.isEscapedByClients(covered) && decoded.starts(with: Self.decoded(covered))
  }

  private static func decoded(_ segments: [String]) -> [String] {
    segments.map { $0.percentDecoded.lowercased() }
  }

  /// Whether a segment is `.` or `..`, escaped or not: where such a path leads depends on the reader.
  private static func isDots(_ segment: String) -> Bool {
    let once = segment.percentDecoded
    return [segment, once, once.percentDecoded].contains { $0 == "." || $0 == ".." }
  }

  /// Whether escapes stand only where clients write them. None escapes letters, digits and `-._~`: a
  /// `%61` was part of somebody's id, and must not become the `a` of another's.
  private static func isEscapedByClients(_ segments: [String]) -> Bool {
    segments.allSatisfy { segment in
      let bytes = Array(segment.utf8)
      return bytes.indices.allSatisfy { index in
        guard bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
          let high = Hex.value(bytes[index + 1]), let low = Hex.value(bytes[index + 2])
        else { return true }
        let escaped = String(decoding: [high << 4 | low], as: UTF8.self)
        return escaped.percentEncoded != escaped
      }
    }
  }

  private static let schemes = ["https", "http", "sb", "amqps"]
  private static let slash = UInt8(ascii: "/")

  private static func endsPath(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  private static func withoutPort(_ authority: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
      authority[(colon + 1)...].allSatisfy({ (0x30...0x39).contains($0) })
    else { return authority }
    // The last colon of a bare IPv6 address is none before a port.
    let host = authority[..<colon]
    return host.contains(UInt8(ascii: ":")) && host.last != UInt8(ascii: "]") ? authority : host
  }

  /// The segments of a folded path, without query, fragment and trailing slashes.
  private static func segments(_ path: ArraySlice<UInt8>) -> [String] {
    var segments = path.prefix { !endsPath($0) }
      .split(separator: slash, omittingEmptySubsequences: false).dropFirst()
    while segments.last?.isEmpty == true { segments.removeLast() }
    return segments.map { String(decoding: $0, as: UTF8.self) }
  }
}
