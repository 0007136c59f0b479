import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A token that proves possession of a key for a resource until it expires (docs/protocol/sas.md,
/// section 2).
///
/// ```swift
/// let token = SharedAccessSignature(
///   resource: "https://contoso-ns.servicebus.windows.net/hub1", keyName: "Listen", key: key,
///   expiresAt: Date().addingTimeInterval(20 * 60))
/// request.setValue(token.text, forHTTPHeaderField: "Authorization")
/// ```
public struct SharedAccessSignature: Hashable, Sendable {
  /// The token as sent in the `Authorization` header. It is a secret until it expires.
  public let text: String
  /// The name of the access policy, decoded.
  public let keyName: String
  /// The time from which the token is no longer valid.
  public let expiresAt: Date

  /// The resource exactly as the token spells it. The signature covers this text, so it is never
  /// decoded and encoded again.
  package let rawResource: String
  /// The expiry exactly as the token spells it.
  package let rawExpiry: String
  /// The `skn` field exactly as the token spells it.
  package let rawKeyName: String
  /// The decoded signature; empty if it does not decode to 32 bytes.
  package let signature: [UInt8]

  /// Mints a token.
  ///
  /// - Parameters:
  ///   - resource: The URL that the token grants access to, with everything below it.
  ///   - keyName: The name of the access policy.
  ///   - key: The policy's primary or secondary key, as text.
  ///   - expiresAt: The expiry, rounded down to a whole second.
  public init(resource: String, keyName: String, key: String, expiresAt: Date) {
    let seconds = Int64(min(max(expiresAt.timeIntervalSince1970.rounded(.down), 0), 1e15))
    rawResource = resource.percentEncoded
    rawExpiry = String(seconds)
    rawKeyName = keyName.percentEncoded
    self.keyName = keyName
    self.expiresAt = Date(timeIntervalSince1970: Double(seconds))
    signature = Self.sign(rawResource: rawResource, rawExpiry: rawExpiry, key: key)
    let sig = Data(signature).base64EncodedString().percentEncoded
    text = "\(Self.scheme) sr=\(rawResource)&sig=\(sig)&se=\(rawExpiry)&skn=\(rawKeyName)"
  }

  static let scheme = "SharedAccessSignature"

  /// Signs a resource and an expiry as a token spells them (docs/protocol/sas.md, section 2.1).
  package static func sign(rawResource: String, rawExpiry: String, key: String) -> [UInt8] {
    messageAuthenticationCode(of: Array("\(rawResource)\n\(rawExpiry)".utf8), key: Array(key.utf8))
  }

  /// Parses a token, the value of an `Authorization` header.
  ///
  /// The fields may come in any order, and unknown ones are ignored. The signature is not verified,
  /// since that takes the key.
  ///
  /// - Throws: ``WireFormatError`` if the token is malformed.
  public init(parsing text: String) throws(WireFormatError) {
    let trimmed = text.trimmingBlanks
    guard let blank = trimmed.utf8.firstIndex(of: 0x20),
      trimmed[..<blank].lowercased() == Self.scheme.lowercased()
    else { throw Self.malformed("it does not begin with '\(Self.scheme) '") }
    var fields: [String: Substring] = [:]
    let list = trimmed.utf8[blank...].drop { $0 == 0x20 }
    for field in list.split(separator: UInt8(ascii: "&")) {
      guard let equals = field.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = Substring(field[..<equals]).lowercased()
      guard ["sr", "sig", "se", "skn"].contains(name) else { continue }
      let value = Substring(field[field.index(after: equals)...])
      guard fields.updateValue(value, forKey: name) == nil else {
        throw Self.malformed("the field '\(name)' is repeated")
      }
    }
    guard let resource = fields["sr"], let sig = fields["sig"], let expiry = fields["se"],
      let name = fields["skn"]
    else { throw Self.malformed("one of the fields sr, sig, se, skn is missing") }
    guard !expiry.isEmpty, expiry.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
      throw Self.malformed("the field 'se' is not a decimal number of seconds")
    }
    self.text = trimmed
    rawResource = String(resource)
    rawExpiry = String(expiry)
    rawKeyName = String(name)
    keyName = String(name).percentDecoded
    // An expiry with too many digits is clamped to a date beyond all others.
    expiresAt = Date(timeIntervalSince1970: min(Double(expiry) ?? 1e15, 1e15))
    signature = Self.decodedSignature(String(sig))
  }

  private static func malformed(_ fault: String) -> WireFormatError {
    WireFormatError("The shared access signature is malformed: \(fault).")
  }

  private static func decodedSignature(_ raw: String) -> [UInt8] {
    // Form decoding along the way turns a raw `+` into a blank.
    let bytes = raw.percentDecoded.utf8.map { $0 == 0x20 ? UInt8(ascii: "+") : $0 }
    guard let decoded = Data(base64Encoded: Data(bytes)), decoded.count == 32 else { return [] }
    return Array(decoded)
  }
}

extension SharedAccessSignature: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// The token without its signature; ``text`` includes it.
  public var description: String {
    "\(Self.scheme) sr=\(rawResource)&sig=…&se=\(rawExpiry)&skn=\(rawKeyName)"
  }
  /// The same as ``description``, without the signature.
  public var debugDescription: String { description }
  /// A mirror without the signature.
  public var customMirror: Mirror {
    Mirror(self, children: ["keyName": keyName, "expiresAt": expiresAt])
  }
}

/// The checks that a server makes on a token (docs/protocol/sas.md, section 4).
extension SharedAccessSignature {
  /// The policy names to look up, likeliest first: `skn` decoded, then with `+` read as a blank.
  package var keyNameCandidates: [String] {
    guard rawKeyName.utf8.contains(UInt8(ascii: "+")) else { return [keyName] }
    let blanks = String(
      decoding: rawKeyName.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }, as: UTF8.self)
    return [keyName, blanks.percentDecoded]
  }

  /// Whether the token was made with this key. Takes the same time for every wrong signature.
  package func isSigned(with key: String) -> Bool {
    let right = Self.sign(rawResource: rawResource, rawExpiry: rawExpiry, key: key)
    return isEqualInConstantTime(right, signature)
  }

  package func isExpired(at now: Date) -> Bool { expiresAt <= now }

  /// Whether the token's resource is the requested one or contains it (docs/protocol/sas.md,
  /// section 4.1).
  ///
  /// Some clients sign the URL as they send it, with percent-escapes, others the decoded URL, so
  /// the token's path is compared as it is and decoded once more. Paths are split into segments
  /// first, so that an escaped slash never separates segments.
  ///
  /// Names of hubs and collections are compared without regard to letter case. Ids are
  /// case-sensitive, except for a token whose path has no capital letter at all, because several
  /// clients lower-case everything they sign.
  ///
  /// - Parameters:
  ///   - path: The path of the request as received, with or without query.
  ///   - hosts: The names under which the server may be addressed, including that of the request;
  ///     ports and letter case are ignored.
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

  /// Whether a segment has a capital letter, not counting those of escapes (`%2F`).
  private static func hasCapital(_ segment: String) -> Bool {
    let bytes = Array(segment.utf8)
    return bytes.indices.contains { index in
      (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(bytes[index])
        && !bytes[max(0, index - 2)..<index].contains(UInt8(ascii: "%"))
    }
  }

  /// Whether every escape is one that clients write. None escapes letters, digits or `-._~`: a
  /// `%61` was part of one id and must not become the `a` of another.
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

  /// The host in lower case, without the port.
  private static func host(_ authority: ArraySlice<UInt8>) -> String {
    let text = String(decoding: authority, as: UTF8.self).lowercased()
    guard let colon = text.lastIndex(of: ":"),
      text[text.index(after: colon)...].utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return text }
    // In a bare IPv6 address the last colon does not precede a port.
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
