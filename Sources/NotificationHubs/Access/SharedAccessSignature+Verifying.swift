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
  /// Letter case plays no role in the names of hubs and collections. Ids are told apart by it, except
  /// for a token whose path has no capital at all: several clients lower-case all that they sign.
  ///
  /// - Parameters:
  ///   - path: The path of the request as received, with or without query.
  ///   - hosts: The names under which the server may be addressed, among them that of the request;
  ///     ports and letter case play no role.
  package func covers(path: String, hosts: some Sequence<String>) -> Bool {
    let resource = Array(rawResource.percentDecoded.utf8)
    var authority = resource[...]
    if let colon = resource.firstIndex(of: UInt8(ascii: ":")),
      resource[(colon + 1)...].starts(with: "//".utf8)
    {
      let scheme = String(decoding: resource[..<colon], as: UTF8.self).lowercased()
      guard Self.schemes.contains(scheme) else { return false }
      authority = resource[(colon + 3)...]
    }
    let end = authority.firstIndex { $0 == Self.slash || Self.endsPath($0) } ?? authority.endIndex
    let host = Self.host(authority[..<end])
    guard hosts.contains(where: { Self.host(Array($0.utf8)[...]) == host }) else { return false }
    let asked = Self.segments(Array(path.utf8)[...])
    let covered = Self.segments(authority[end...])
    guard !(asked + covered).contains(where: \.hasDotSegment) else { return false }
    let isExact = covered.contains(where: Self.hasCapital)
    func isPrefix(_ covered: [String]) -> Bool {
      covered.count <= asked.count
        && zip(asked, covered).enumerated().allSatisfy { place, pair in
          let decoded = pair.0.percentDecoded
          // Hub, collection, id.
          return isExact && place == 2
            ? decoded.utf8.elementsEqual(pair.1.utf8)
            : decoded.lowercased() == pair.1.lowercased()
        }
    }
    return isPrefix(covered)
      || Self.isEscapedByClients(covered) && isPrefix(covered.map(\.percentDecoded))
  }

  /// Whether a segment has a capital letter, those of escapes (`%2F`) aside.
  private static func hasCapital(_ segment: String) -> Bool {
    let bytes = Array(segment.utf8)
    return bytes.indices.contains { index in
      (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(bytes[index])
        && !bytes[max(0, index - 2)..<index].contains(UInt8(ascii: "%"))
    }
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

  /// In lower case and without port.
  private static func host(_ authority: ArraySlice<UInt8>) -> String {
    let text = String(decoding: authority, as: UTF8.self).lowercased()
    guard let colon = text.lastIndex(of: ":"),
      text[text.index(after: colon)...].utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return text }
    // The last colon of a bare IPv6 address is none before a port.
    let host = text[..<colon]
    return host.contains(":") && host.last != "]" ? text : String(host)
  }

  /// The segments of a path, without query, fragment and trailing slashes.
  private static func segments(_ path: ArraySlice<UInt8>) -> [String] {
    var segments = path.prefix { !endsPath($0) }
      .split(separator: slash, omittingEmptySubsequences: false).dropFirst()
    while segments.last?.isEmpty == true { segments.removeLast() }
    return segments.map { String(decoding: $0, as: UTF8.self) }
  }
}
