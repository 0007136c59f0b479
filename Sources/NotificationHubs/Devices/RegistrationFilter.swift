import Wire

/// The registrations that a `$filter` selects, which are those of one device
/// (docs/protocol/rest.md, section 3.10).
package struct RegistrationFilter: Hashable, Sendable {
  /// The platform whose field the filter names; `nil` for `ChannelUri`, which matches any handle.
  package let platform: PushPlatform?
  /// Spellings of ``PushChannel/handle`` under which the device may be stored, likeliest first; at
  /// most ten.
  package let handles: [String]
  /// The keys of a browser, in addition to its endpoint.
  private let keys: Keys?

  private struct Keys: Hashable, Sendable {
    let p256dh: [String]
    let auth: [String]
  }

  /// Whether a registration with one of the ``handles`` is selected.
  package func matches(platform: PushPlatform, channel: PushChannel) -> Bool {
    guard self.platform == nil || self.platform == platform, handles.contains(channel.handle)
    else { return false }
    guard let keys else { return true }
    guard case .subscription(_, let p256dh, let auth) = channel else { return false }
    return keys.p256dh.contains(p256dh) && keys.auth.contains(auth)
  }

  /// The filter that a client sends for a device; `ChannelUri` matches any handle.
  package static func text(_ channel: PushChannel) -> String {
    func term(_ field: String, _ text: String) -> String {
      // Splits scalars: a mark that combines with the quote would hide it from a search by
      // characters.
      let literal = text.unicodeScalars.split(separator: "'", omittingEmptySubsequences: false)
        .map { String($0) }.joined(separator: "''")
      return "\(field) eq '\(literal)'"
    }
    guard case .subscription(let endpoint, let p256dh, let auth) = channel else {
      return term(RegistrationElement.channelURI, channel.handle)
    }
    return zip(RegistrationElement.handles(.browser), [endpoint, p256dh, auth])
      .map { term($0, $1) }.joined(separator: " and ")
  }

  /// The maximum length of a filter, in bytes.
  package static let maximumLength = 16_384

  /// Parses a filter in any of the forms that clients send.
  ///
  /// - Parameter text: The value of the query parameter, percent-decoded once or not at all.
  /// - Throws: ``WireFormatError`` for anything else; the hub replies with 400.
  package init(parsing text: String) throws(WireFormatError) {
    let fault = WireFormatError("The $filter expression is not supported.")
    guard text.utf8.count <= Self.maximumLength else { throw fault }
    var parsed = Self(terms: FilterScanner.terms(text))
    if parsed == nil { parsed = Self(terms: FilterScanner.terms(text.percentDecoded)) }
    guard let parsed else { throw fault }
    self = parsed
  }

  /// Selects all registrations with a handle, on any platform; for a browser the endpoint is
  /// enough.
  ///
  /// - Parameter handle: The handle as a push service or an app gives it: a token in either case, a
  ///   channel URI, or the JSON of a subscription.
  /// - Throws: ``WireFormatError`` for a text that cannot be a handle.
  package init(handle: String) throws(WireFormatError) {
    let text = handle.trimmingBlanks
    guard !text.isEmpty, text.utf8.count <= Self.maximumLength,
      !text.unicodeScalars.contains(where: { $0.value < 0x20 }) || text.first == "{"
    else {
      throw WireFormatError(
        "A handle is the whole token, channel address or subscription of a device, at most "
          + "\(Self.maximumLength) bytes.")
    }
    platform = nil
    keys = nil
    guard text.first == "{" else {
      handles = Self.anyPlatform(text)
      return
    }
    guard case .string(let endpoint)? = try JSONValue.parse(text.utf8)["endpoint"],
      !endpoint.isEmpty
    else { throw WireFormatError("A subscription has the member endpoint.") }
    handles = [endpoint]
  }

  private init?(terms: [String: String]?) {
    guard let terms else { return nil }
    func term(_ name: String) -> String? { terms[name.lowercased()] }
    if terms.count == 1, let handle = term(RegistrationElement.channelURI) {
      platform = nil
      handles = Self.anyPlatform(handle)
      keys = nil
      return
    }
    let named = PushPlatform.allCases.first { platform in
      let names = RegistrationElement.handles(platform)
      return platform != .wns && platform != .mpns && names.count == terms.count
        && names.allSatisfy { term($0) != nil }
    }
    guard let named else { return nil }
    platform = named
    let parts = RegistrationElement.handles(named).compactMap(term)
    switch named {
    case .apns:
      handles = [parts[0].uppercased()]
      keys = nil
    case .baidu:
      handles = [PushChannel.baidu(userID: parts[0], channelID: parts[1]).handle]
        .appendingMissing("\(parts[0])-\(parts[1])")
      keys = nil
    case .browser:
      handles = Self.spellings(parts[0])
      keys = Keys(p256dh: Self.spellings(parts[1]), auth: Self.spellings(parts[2]))
    default:
      handles = Self.spellings(parts[0])
      keys = nil
    }
  }

  /// The literal as given, and percent-decoded once more.
  private static func spellings(_ literal: String) -> [String] {
    [literal].appendingMissing(literal.percentDecoded)
  }

  /// The possible spellings of a handle of unknown platform: Apple tokens are stored in upper case,
  /// and a Baidu pair may contain hyphens before the one that separates it.
  private static func anyPlatform(_ literal: String) -> [String] {
    var handles = spellings(literal)
    if literal.utf8.isHex {
      handles = handles.appendingMissing(literal.uppercased())
    }
    guard !literal.contains("/") else {
      // A Windows channel with an empty path is stored with a slash in a registration, and without
      // one in an installation that was given without.
      for spelling in handles where spelling.isAbsoluteURI {
        handles = handles.appendingMissing(spelling.withRootPath)
        let bare = String(spelling.dropLast())
        if bare.isAbsoluteURI, bare.withRootPath == spelling {
          handles = handles.appendingMissing(bare)
        }
      }
      return handles
    }
    for hyphen in literal.indices.filter({ literal[$0] == "-" }).dropFirst().prefix(7) {
      let pair = PushChannel.baidu(
        userID: String(literal[..<hyphen]),
        channelID: String(literal[literal.index(after: hyphen)...]))
      handles = handles.appendingMissing(pair.handle)
    }
    return handles
  }
}

extension [String] {
  fileprivate func appendingMissing(_ text: String) -> [String] {
    contains(text) ? self : self + [text]
  }
}

/// Parses `Field eq 'literal' and …`.
private struct FilterScanner {
  private let bytes: [UInt8]
  private var position = 0

  /// The literals by case-folded field name; `nil` if the text has another form.
  static func terms(_ text: String) -> [String: String]? {
    var scanner = FilterScanner(bytes: Array(text.utf8))
    return scanner.terms()
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private mutating func terms() -> [String: String]? {
    var terms: [String: String] = [:]
    while terms.count < 3 {
      guard let field = word(), word() == "eq", let literal = literal(of: field),
        !literal.isEmpty, terms.updateValue(literal, forKey: field) == nil
      else { return nil }
      skipBlanks()
      if position == bytes.count { return terms }
      guard word() == "and" else { return nil }
    }
    return nil
  }

  /// Between tokens a plus sign also counts as a blank.
  private mutating func skipBlanks() {
    while position < bytes.count, bytes[position] == 0x20 || bytes[position] == UInt8(ascii: "+") {
      position += 1
    }
  }

  private mutating func word() -> String? {
    skipBlanks()
    let start = position
    while position < bytes.count, Self.isWord(bytes[position]) { position += 1 }
    guard position > start else { return nil }
    return String(decoding: bytes[start..<position], as: UTF8.self).lowercased()
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
      || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  /// A text in single quotes, which are doubled inside; one client omits the opening quote.
  private mutating func literal(of field: String) -> String? {
    skipBlanks()
    guard position < bytes.count else { return nil }
    let quote = UInt8(ascii: "'")
    if bytes[position] == quote {
      position += 1
    } else if field != RegistrationElement.baiduChannelID.lowercased() {
      return nil
    }
    var out: [UInt8] = []
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if byte == quote {
        guard position < bytes.count, bytes[position] == quote else {
          return String(decoding: out, as: UTF8.self)
        }
        position += 1
      }
      out.append(byte)
    }
    return nil
  }
}
