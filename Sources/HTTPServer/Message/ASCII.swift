/// The characters of HTTP's grammar that are compared byte by byte.
enum ASCII {
  static let slash = UInt8(ascii: "/")
  static let backslash = UInt8(ascii: "\\")
  static let dot = UInt8(ascii: ".")
  static let semicolon = UInt8(ascii: ";")
  static let percent = UInt8(ascii: "%")
  static let questionMark = UInt8(ascii: "?")
  static let ampersand = UInt8(ascii: "&")
  static let equals = UInt8(ascii: "=")
  static let tab = UInt8(ascii: "\t")
  static let blank = UInt8(ascii: " ")

  /// Lower-cases `A`–`Z`; other bytes are unchanged.
  static func lowercase(_ byte: UInt8) -> UInt8 {
    byte &- 65 < 26 ? byte | 0x20 : byte
  }

  /// Whether two byte sequences are equal regardless of letter case.
  static func equalIgnoringCase(
    _ left: some Collection<UInt8>, _ right: some Collection<UInt8>
  ) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).allSatisfy { lowercase($0) == lowercase($1) }
  }
}
