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
  /// - Parameters:
  ///   - path: The path of the request as received, with or without query.
  ///   - hosts: The names under which the server may be addressed, among them that of the request;
  ///     ports and letter case play no role.
  package func covers(path: String, hosts: some Sequence<String>) -> Bool {
    var resource = rawResource.percentDecoded
    if resource.firstRange(of: "://") == nil { resource = "https://" + resource }
    guard let schemeEnd = resource.firstRange(of: "://"),
      ["http", "https", "sb", "amqps"].contains(resource[..<schemeEnd.lowerBound].lowercased())
    else { return false }
    let rest = resource[schemeEnd.upperBound...]
    let authorityEnd = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
    let host = Self.withoutPort(rest[..<authorityEnd])
    guard hosts.contains(where: { Self.withoutPort($0) == host }) else { return false }
    let own = Self.segments(rest[authorityEnd...])
    return Self.segments(path).starts(with: own)
  }

  private static func withoutPort(_ authority: some StringProtocol) -> String {
    let folded = authority.lowercased()
    guard let colon = folded.lastIndex(of: ":"), folded[colon...].dropFirst().allSatisfy(\.isNumber)
    else { return folded }
    // The last colon of a bare IPv6 address is none before a port.
    let host = folded[..<colon]
    return host.contains(":") && host.last != "]" ? folded : String(host)
  }

  /// The segments of a path, decoded and folded, without query, fragment and trailing slashes.
  private static func segments(_ path: some StringProtocol) -> [String] {
    let end = path.firstIndex { $0 == "?" || $0 == "#" } ?? path.endIndex
    var segments = String(path[..<end]).percentDecoded.lowercased()
      .split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    while segments.last?.isEmpty == true { segments.removeLast() }
    return segments.map(String.init)
  }
}
