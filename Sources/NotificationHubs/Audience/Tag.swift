import Wire

/// A label that groups devices, such as `news` or `city:oslo` (docs/protocol/tags.md, section 1).
///
/// Two tags are equal if they differ only in letter case, except in the id of an installation; the
/// original spelling is kept.
/// A `Tag` is not checked when it is created; ``validated()`` checks that the hub will accept it.
/// Implicit tags (`$InstallationId:{…}`, `$UserId:{…}`) are tags too.
public struct Tag: Hashable, Sendable, RawRepresentable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The tag as written.
  public let rawValue: String

  /// Creates a tag from any text; ``validated()`` checks it.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// Creates a tag from a literal; ``validated()`` checks it.
  public init(stringLiteral value: String) { self.init(rawValue: value) }

  /// The form used for comparison: lower case, except for the id in `$InstallationId:{…}`.
  /// Installation ids are always compared exactly: a device called `ABC` must not receive what is
  /// meant for `abc`.
  public var folded: String {
    let folded = rawValue.foldingCapitals
    guard folded.utf8.first == UInt8(ascii: "$"), folded.hasPrefix(Self.installationKeyword) else {
      return folded
    }
    return Self.installationKeyword + rawValue.dropFirst(Self.installationKeyword.count)
  }

  private static let installationKeyword = "$installationid:{"
  /// The tag as written.
  public var description: String { rawValue }

  /// Compares the ``folded`` forms.
  public static func == (left: Tag, right: Tag) -> Bool { left.folded == right.folded }
  /// Hashes the ``folded`` form.
  public func hash(into hasher: inout Hasher) { hasher.combine(folded) }
}

/// Encoded as its text.
extension Tag: Codable {}

extension Tag {
  /// The maximum length of a tag, in UTF-16 code units, implicit tags included
  /// (docs/protocol/tags.md, section 1).
  public static let maximumLength = 120
  /// The maximum number of tags of a registration or an installation.
  public static let maximumCount = 60

  /// The tag that reaches one installation: `$InstallationId:{…}`.
  public static func installation(_ installationID: String) -> Tag {
    braced("$InstallationId:{", installationID)
  }

  /// The tag that reaches every installation of one user: `$UserId:{…}`.
  public static func user(_ userID: String) -> Tag { braced("$UserId:{", userID) }

  /// The same as string interpolation would give, in one allocation.
  private static func braced(_ keyword: String, _ id: String) -> Tag {
    let count = keyword.utf8.count + id.utf8.count + 1
    let text = String(unsafeUninitializedCapacity: count) { bytes in
      let end = bytes.initialize(from: keyword.utf8).index
      _ = bytes[end...].initialize(from: id.utf8)
      bytes[count - 1] = UInt8(ascii: "}")
      return count
    }
    return Tag(rawValue: text)
  }

  /// Whether the tag is one that the hub sets itself. Such tags cannot be assigned to devices, but
  /// expressions can use them.
  public var isImplicit: Bool { rawValue.utf8.first == UInt8(ascii: "$") }

  /// Returns the tag without surrounding blanks if a hub accepts it.
  ///
  /// ```swift
  /// let tag = try Tag(rawValue: userInput).validated()
  /// ```
  /// - Throws: ``WireFormatError`` if the tag is empty, too long or has a character that is not
  ///   allowed; `$InstallationId` and `$UserId` are the only valid implicit tags.
  public func validated() throws(WireFormatError) -> Tag {
    let trimmed = Tag(rawValue: rawValue.trimmingBlanks)
    guard trimmed.isValid else { throw Self.invalid(rawValue) }
    return trimmed
  }

  /// The service's error message for an invalid tag.
  package static func invalid(_ supplied: String) -> WireFormatError {
    WireFormatError(
      "An invalid tag(s) '\(supplied)' was supplied. Valid tag characters are "
        + "alphanumeric, _, @, -, ., : and #")
  }

  /// Validates the tags of a registration or an installation, removing blanks around each tag and
  /// repetitions of the same tag.
  package static func validated(list: [Tag]) throws(WireFormatError) -> [Tag] {
    if isValidAsWritten(list) { return list }
    var seen = Set<String>()
    var valid: [Tag] = []
    valid.reserveCapacity(min(list.count, maximumCount))
    var invalid: [String] = []
    for tag in list {
      let trimmed = Tag(rawValue: tag.rawValue.trimmingBlanks)
      if trimmed.isImplicit { throw WireFormatError("Tags can not start with $") }
      guard trimmed.isValid else {
        invalid.append(tag.rawValue)
        continue
      }
      // Few tags are compared faster than hashed.
      let isNew =
        list.count <= 8 ? !valid.contains(trimmed) : seen.insert(trimmed.folded).inserted
      if isNew { valid.append(trimmed) }
    }
    guard invalid.isEmpty else { throw Self.invalid(invalid.joined(separator: ",")) }
    guard valid.count <= maximumCount else {
      throw WireFormatError(
        "'Tags' has \(valid.count) tags; at most \(maximumCount) tags are allowed.")
    }
    return valid
  }

  /// Whether a list of at most eight tags is valid as it stands: ASCII, without blanks, none twice. It
  /// usually is, and no other list has to be made.
  private static func isValidAsWritten(_ list: [Tag]) -> Bool {
    guard list.count <= 8 else { return false }
    for (index, tag) in list.enumerated() {
      let bytes = tag.rawValue.utf8
      guard (1...maximumLength).contains(bytes.count),
        bytes.withBytes({ $0.allSatisfy(isTagByte) }),
        !list[..<index].contains(where: { $0.rawValue.utf8.isEqualIgnoringCase(bytes) })
      else { return false }
    }
    return true
  }

  /// Whether a character of ASCII may be in a tag.
  private static func isTagByte(_ byte: UInt8) -> Bool {
    switch UnicodeScalar(byte) {
    case "a"..."z", "A"..."Z", "0"..."9", "_", "@", "#", ".", ":", "-": true
    default: false
    }
  }

  /// Whether the text is a valid tag; surrounding blanks are not allowed.
  package var isValid: Bool {
    guard (1...Self.maximumLength).contains(rawValue.utf16.count) else { return false }
    return isImplicit
      ? Self.isImplicitTag(rawValue) : Self.hasTagCharactersOnly(rawValue)
  }

  private static func isImplicitTag(_ text: String) -> Bool {
    let bytes = text.utf8
    guard bytes.last == UInt8(ascii: "}"), let brace = bytes.firstIndex(of: UInt8(ascii: "{"))
    else {
      return false
    }
    let keyword = text[..<brace].lowercased()
    guard keyword == "$installationid:" || keyword == "$userid:" else { return false }
    return isIdentifier(text[bytes.index(after: brace)..<bytes.index(before: bytes.endIndex)])
  }

  /// Whether ``installation(_:)`` gives a valid tag.
  package static func isInstallationID(_ text: String) -> Bool {
    isIdentifier(text) && text.utf16.count <= maximumLength - "$InstallationId:{}".utf8.count
  }

  /// Whether ``user(_:)`` gives a valid tag.
  package static func isUserID(_ text: String) -> Bool {
    isIdentifier(text) && text.utf16.count <= maximumLength - "$UserId:{}".utf8.count
  }

  /// Whether the text can be part of an implicit tag, as installation and user ids must be.
  package static func isIdentifier(_ text: some StringProtocol) -> Bool {
    !text.isEmpty && hasTagCharactersOnly(text, or: UInt8(ascii: "="))
  }

  private static func hasTagCharactersOnly(
    _ text: some StringProtocol, or other: UInt8? = nil
  ) -> Bool {
    func isAllowed(_ byte: UInt8) -> Bool { isTagByte(byte) || byte == other }
    if text.utf8.withBytes({ $0.allSatisfy(isAllowed) }) { return true }
    return text.unicodeScalars.allSatisfy { scalar in
      guard !scalar.isASCII else { return isAllowed(UInt8(scalar.value)) }
      switch scalar.properties.generalCategory {
      case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
        .decimalNumber, .nonspacingMark, .spacingMark:
        return true
      default: return false
      }
    }
  }
}
