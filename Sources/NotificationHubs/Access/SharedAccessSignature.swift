import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A token that proves possession of a key for a resource until an instant (docs/protocol/sas.md,
/// section 2).
///
/// ```swift
/// let token = SharedAccessSignature(
///   resource: "https://contoso-ns.servicebus.windows.net/hub1", keyName: "Listen", key: key,
///   expiresAt: Date().addingTimeInterval(20 * 60))
/// request.setValue(token.text, forHTTPHeaderField: "Authorization")
/// ```
public struct SharedAccessSignature: Hashable, Sendable {
  /// The token as the `Authorization` header carries it. It is a secret until it expires.
  public let text: String
  /// The name of the access policy, decoded.
  public let keyName: String
  /// The instant from which on it is worth nothing.
  public let expiresAt: Date

  /// The resource as it stands in the token: what is signed, so never decoded and encoded again.
  package let rawResource: String
  /// The expiry as it stands in the token.
  package let rawExpiry: String
  /// The `skn` field as it stands in the token.
  package let rawKeyName: String
  /// The signature, decoded; empty when it does not decode to 32 bytes.
  package let signature: [UInt8]

  /// Mints a token.
  ///
  /// - Parameters:
  ///   - resource: The address that the token opens, with all below it.
  ///   - keyName: The name of the access policy.
  ///   - key: The policy's primary or secondary key, as text.
  ///   - expiresAt: Rounded down to a whole second.
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

  /// The signature of a resource and an expiry as they stand in a token (docs/protocol/sas.md,
  /// section 2.1).
  package static func sign(rawResource: String, rawExpiry: String, key: String) -> [UInt8] {
    messageAuthenticationCode(of: Array("\(rawResource)\n\(rawExpiry)".utf8), key: Array(key.utf8))
  }

  /// Reads a token: the value of an `Authorization` header.
  ///
  /// The fields may come in any order, unknown ones are passed over. Whether the signature is right
  /// only the holder of the key can say.
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
    // More digits than fit are a date past all dates.
    expiresAt = Date(timeIntervalSince1970: min(Double(expiry) ?? 1e15, 1e15))
    signature = Self.decodedSignature(String(sig))
  }

  private static func malformed(_ fault: String) -> WireFormatError {
    WireFormatError("The shared access signature is malformed: \(fault).")
  }

  private static func decodedSignature(_ raw: String) -> [UInt8] {
    // Form decoding on the way turns a raw `+` into a blank.
    let bytes = raw.percentDecoded.utf8.map { $0 == 0x20 ? UInt8(ascii: "+") : $0 }
    guard let decoded = Data(base64Encoded: Data(bytes)), decoded.count == 32 else { return [] }
    return Array(decoded)
  }
}

extension SharedAccessSignature: CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  /// Without the signature; ``text`` has it.
  public var description: String {
    "\(Self.scheme) sr=\(rawResource)&sig=…&se=\(rawExpiry)&skn=\(rawKeyName)"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror {
    Mirror(self, children: ["keyName": keyName, "expiresAt": expiresAt])
  }
}

/// What a server asks of a token (docs/protocol/sas.md, section 4).
extension SharedAccessSignature {
  /// The policy names to look for, the likeliest first: `skn` decoded, then with `+` read as a
  /// blank.
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

  /// Whether the token's resource is the requested one or contains it (docs/protocol/sas.md,
  /// section 4.1).
  ///
  /// Some clients sign the URL as they send it, with its percent-escapes, others the decoded one:
  /// the token's path is compared as it stands and decoded once more. Paths are cut into segments
  /// first, so that an escaped slash never makes one.
  ///
  /// Letter case plays no role in the names of hubs and collections. Ids are told apart by it,
  /// except for a token whose path has no capital at all: several clients lower-case all that they
  /// sign.
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

  /// Whether escapes stand only where clients write them. None escapes letters, digits and `-._~`:
  /// a `%61` was part of somebody's id, and must not become the `a` of another's.
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
