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
  /// The time from which the token is no longer valid.
  public let expiresAt: Date

  /// The token as sent, in UTF-8, and its fields. The signature covers resource and expiry exactly as
  /// the token spells them, so they are never decoded and encoded again.
  private let bytes: [UInt8]
  private let resource: Range<Int>
  private let expiry: Range<Int>
  private let name: Range<Int>
  /// The decoded signature; `nil` if it does not decode to 32 bytes.
  private let code: SigningKey.Code?

  /// The token as sent in the `Authorization` header. It is a secret until it expires.
  public var text: String { String(decoding: bytes, as: UTF8.self) }
  /// The name of the access policy, decoded.
  public var keyName: String { rawKeyName.percentDecoded }
  /// The resource exactly as the token spells it.
  package var rawResource: String { text(resource) }
  /// The expiry exactly as the token spells it.
  package var rawExpiry: String { text(expiry) }
  /// The `skn` field exactly as the token spells it.
  package var rawKeyName: String { text(name) }
  /// The decoded signature; empty if it does not decode to 32 bytes.
  package var signature: [UInt8] { code?.bytes ?? [] }

  private func text(_ field: Range<Int>) -> String { String(decoding: bytes[field], as: UTF8.self) }

  /// Mints a token.
  ///
  /// - Parameters:
  ///   - resource: The URL that the token grants access to, with everything below it.
  ///   - keyName: The name of the access policy.
  ///   - key: The policy's primary or secondary key, as text.
  ///   - expiresAt: The expiry, rounded down to a whole second.
  public init(resource: String, keyName: String, key: String, expiresAt: Date) {
    let seconds = Int64(min(max(expiresAt.timeIntervalSince1970.rounded(.down), 0), 1e15))
    var bytes: [UInt8] = []
    func append(_ name: String, _ value: String) -> Range<Int> {
      bytes += name.utf8
      let start = bytes.count
      bytes += value.utf8
      return start..<bytes.count
    }
    self.resource = append("\(Self.scheme) sr=", resource.percentEncoded)
    let code = Self.code(
      SigningKey(key.utf8), resource: bytes[self.resource], expiry: Array(String(seconds).utf8)[...]
    )
    _ = append("&sig=", Base64.encode(code.bytes).percentEncoded)
    expiry = append("&se=", String(seconds))
    name = append("&skn=", keyName.percentEncoded)
    self.bytes = bytes
    self.code = code
    self.expiresAt = Date(timeIntervalSince1970: Double(seconds))
  }

  static let scheme = "SharedAccessSignature"

  /// Parses a token, the value of an `Authorization` header.
  ///
  /// The fields may come in any order, and unknown ones are ignored. The signature is not verified,
  /// since that takes the key.
  ///
  /// - Throws: ``WireFormatError`` if the token is malformed.
  public init(parsing text: String) throws(WireFormatError) {
    try self.init(parsing: Array(text.utf8)[...])
  }

  package init(parsing header: ArraySlice<UInt8>) throws(WireFormatError) {
    let bytes = Array(header.trimmingBlanks)
    let scheme = Self.scheme.utf8
    guard bytes.count > scheme.count, bytes[scheme.count] == UInt8(ascii: " "),
      bytes[..<scheme.count].isEqualIgnoringCase(scheme)
    else { throw Self.malformed("it does not begin with '\(Self.scheme) '") }
    var (resource, signature, expiry, name): (Range<Int>?, Range<Int>?, Range<Int>?, Range<Int>?)
    func keep(_ value: Range<Int>, as field: inout Range<Int>?) throws(WireFormatError) {
      guard field == nil else { throw Self.malformed("a field is repeated") }
      field = value
    }
    var start = bytes[scheme.count...].firstIndex { $0 != UInt8(ascii: " ") } ?? bytes.count
    while start < bytes.count {
      let end = bytes[start...].firstIndex(of: UInt8(ascii: "&")) ?? bytes.count
      if let equals = bytes[start..<end].firstIndex(of: UInt8(ascii: "=")) {
        let value = (equals + 1)..<end
        // On the bytes in place: comparing slices took a third of all parsing.
        func isField(_ word: StaticString) -> Bool {
          word.utf8CodeUnitCount == equals - start
            && (0..<word.utf8CodeUnitCount).allSatisfy {
              bytes[start + $0].foldedCapital == word.utf8Start[$0]
            }
        }
        if isField("sr") {
          try keep(value, as: &resource)
        } else if isField("sig") {
          try keep(value, as: &signature)
        } else if isField("se") {
          try keep(value, as: &expiry)
        } else if isField("skn") {
          try keep(value, as: &name)
        }
      }
      start = end + 1
    }
    guard let resource, let signature, let expiry, let name else {
      throw Self.malformed("one of the fields sr, sig, se, skn is missing")
    }
    guard !expiry.isEmpty, bytes[expiry].allSatisfy(\.isDigit) else {
      throw Self.malformed("the field 'se' is not a decimal number of seconds")
    }
    // Another date than these is beyond all others.
    let seconds = bytes[expiry].reduce(0) {
      min($0 * 10 + Int($1 - UInt8(ascii: "0")), Self.latest)
    }
    expiresAt = Date(timeIntervalSince1970: Double(seconds))
    // Form decoding along the way turns a raw `+` into a blank.
    var digits = PercentEncoding.decodeLeniently(bytes[signature])
    for index in digits.indices where digits[index] == UInt8(ascii: " ") {
      digits[index] = UInt8(ascii: "+")
    }
    code = SigningKey.Code(base64: digits)
    self.bytes = bytes
    self.resource = resource
    self.expiry = expiry
    self.name = name
  }

  private static let latest = 1_000_000_000_000_000

  /// Signs a resource and an expiry as a token spells them (docs/protocol/sas.md, section 2.1).
  private static func code(
    _ key: SigningKey, resource: ArraySlice<UInt8>, expiry: ArraySlice<UInt8>
  ) -> SigningKey.Code {
    key.code(of: resource, [UInt8(ascii: "\n")], expiry)
  }

  private static func malformed(_ fault: String) -> WireFormatError {
    WireFormatError("The shared access signature is malformed: \(fault).")
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

  /// Whether ``keyNameCandidates`` has this name. Bytes beyond ASCII are compared as strings, which
  /// are equal also when they are composed otherwise.
  package func mayName(_ policy: String) -> Bool {
    let raw = bytes[name]
    guard raw.contains(where: { $0 == Self.percent || $0 == UInt8(ascii: "+") || $0 >= 0x80 })
    else {
      return policy.utf8.hasSameBytes(as: raw)
    }
    return keyNameCandidates.contains(policy)
  }

  /// Whether the token was made with this key. Takes the same time for every wrong signature
  /// of 32 bytes.
  package func isSigned(with key: SigningKey) -> Bool {
    guard let code else { return false }
    let right = Self.code(key, resource: bytes[resource], expiry: bytes[expiry])
    return right.isEqual(to: code)
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
  /// case-sensitive, except for a token whose path has no capital of ASCII, because several
  /// clients lower-case everything they sign.
  ///
  /// - Parameters:
  ///   - path: The path of the request as received, with or without query. A `#` is part of it, as
  ///     for the routes.
  ///   - hosts: The names under which the server may be addressed, including that of the request;
  ///     ports and letter case are ignored.
  package func covers(path: ArraySlice<UInt8>, hosts: [ArraySlice<UInt8>]) -> Bool {
    let resource = PercentEncoding.decodeLeniently(bytes[self.resource])
    var authority = resource[...]
    if let colon = resource.firstIndex(of: UInt8(ascii: ":")),
      resource[(colon + 1)...].starts(with: "//".utf8)
    {
      guard Self.schemes.contains(where: { resource[..<colon].isEqualIgnoringCase($0.utf8) })
      else { return false }
      authority = resource[(colon + 3)...]
    }
    let end = authority.firstIndex { $0 == Self.slash || Self.endsPath($0) } ?? authority.endIndex
    let host = Self.host(authority[..<end])
    guard hosts.contains(where: { Self.host($0).isEqualIgnoringCase(host) }) else { return false }
    let askedPath = path.prefix { $0 != UInt8(ascii: "?") }
    let coveredPath = authority[end...].prefix { !Self.endsPath($0) }
    if Self.isPlain(askedPath, below: coveredPath) { return true }
    let asked = Self.segments(askedPath)
    let covered = Self.segments(coveredPath)
    guard covered.count <= asked.count,
      !asked.contains(where: Self.hasDots), !covered.contains(where: Self.hasDots)
    else { return false }
    let isExact = covered.contains(where: Self.hasCapital)
    func isPrefix(_ covered: [ArraySlice<UInt8>]) -> Bool {
      zip(asked, covered).enumerated().allSatisfy { place, pair in
        // Hub, collection, id.
        Self.isSame(pair.0, pair.1, exactly: isExact && place == 2)
      }
    }
    return isPrefix(covered)
      || covered.contains { $0.contains(Self.percent) } && Self.isEscapedByClients(covered)
        && isPrefix(covered.map { PercentEncoding.decodeLeniently($0)[...] })
  }

  /// Whether a requested path has the token's bytes, then no more or a slash, and nothing in it that
  /// could be read in two ways: the usual case, which takes no splitting.
  private static func isPlain(_ asked: ArraySlice<UInt8>, below covered: ArraySlice<UInt8>) -> Bool
  {
    var covered = covered
    while covered.last == slash { covered.removeLast() }
    guard asked.starts(with: covered),
      asked.count == covered.count || asked[asked.startIndex + covered.count] == slash
    else { return false }
    return asked.allSatisfy { $0 != percent && $0 != UInt8(ascii: ".") }
  }

  /// Whether a requested segment, decoded, is one of the token.
  private static func isSame(
    _ asked: ArraySlice<UInt8>, _ covered: ArraySlice<UInt8>, exactly: Bool
  ) -> Bool {
    let asked = asked.contains(percent) ? PercentEncoding.decodeLeniently(asked)[...] : asked
    if exactly { return asked.elementsEqual(covered) }
    if asked.isEqualIgnoringCase(covered) { return true }
    // Other letters than those of ASCII have case, too.
    guard asked.contains(where: { $0 >= 0x80 }), covered.contains(where: { $0 >= 0x80 }) else {
      return false
    }
    return String(decoding: asked, as: UTF8.self).lowercased().utf8
      .elementsEqual(String(decoding: covered, as: UTF8.self).lowercased().utf8)
  }

  private static func hasDots(_ segment: ArraySlice<UInt8>) -> Bool {
    segment.contains { $0 == UInt8(ascii: ".") || $0 == percent }
      && String(decoding: segment, as: UTF8.self).hasDotSegment
  }

  /// Whether a segment has a capital letter, not counting those of escapes (`%2F`).
  private static func hasCapital(_ segment: ArraySlice<UInt8>) -> Bool {
    segment.indices.contains { index in
      segment[index].foldedCapital != segment[index]
        && !segment[max(segment.startIndex, index - 2)..<index].contains(percent)
    }
  }

  /// Whether every escape is one that clients write. None escapes letters, digits or `-._~`: a
  /// `%61` was part of one id and must not become the `a` of another.
  private static func isEscapedByClients(_ segments: [ArraySlice<UInt8>]) -> Bool {
    segments.allSatisfy { segment in
      segment.indices.allSatisfy { index in
        guard segment[index] == percent, index + 2 < segment.endIndex,
          let high = Hex.value(segment[index + 1]), let low = Hex.value(segment[index + 2])
        else { return true }
        let escaped = String(decoding: [high << 4 | low], as: UTF8.self)
        return escaped.percentEncoded != escaped
      }
    }
  }

  private static let schemes = ["https", "http", "sb", "amqps"]
  private static let slash = UInt8(ascii: "/")
  private static let percent = UInt8(ascii: "%")

  private static func endsPath(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  /// The host without the port.
  private static func host(_ authority: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
      authority[(colon + 1)...].allSatisfy(\.isDigit)
    else { return authority }
    // In a bare IPv6 address the last colon does not precede a port.
    let host = authority[..<colon]
    return host.contains(UInt8(ascii: ":")) && host.last != UInt8(ascii: "]") ? authority : host
  }

  /// The segments of a path, without trailing slashes.
  private static func segments(_ path: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    var segments = path.split(separator: slash, omittingEmptySubsequences: false).dropFirst()
    while segments.last?.isEmpty == true { segments.removeLast() }
    return Array(segments)
  }
}

extension SigningKey.Code {
  /// - Parameter base64: The standard alphabet with padding.
  init?(base64: [UInt8]) {
    guard base64.count == 44, base64.last == UInt8(ascii: "="),
      let bytes = Base64.decode(digits: base64.dropLast()), bytes.count == 32
    else { return nil }
    self = bytes.withUnsafeBytes { Self($0) }
  }
}
