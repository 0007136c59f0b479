extension JSONScanner {
  /// The text of a string that ``next()`` has found well-formed; a surrogate without its partner
  /// becomes U+FFFD.
  static func unescaped(_ raw: ArraySlice<UInt8>) -> [UInt8] {
    guard raw.contains(UInt8(ascii: "\\")) else { return Array(raw) }
    var text: [UInt8] = []
    text.reserveCapacity(raw.count)
    var rest = raw
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), let letter = rest.popFirst() else {
        text.append(byte)
        continue
      }
      switch letter {
      case UInt8(ascii: "b"): text.append(0x08)
      case UInt8(ascii: "f"): text.append(0x0C)
      case UInt8(ascii: "n"): text.append(0x0A)
      case UInt8(ascii: "r"): text.append(0x0D)
      case UInt8(ascii: "t"): text.append(0x09)
      case UInt8(ascii: "u"): text.append(contentsOf: scalar(&rest))
      default: text.append(letter)
      }
    }
    return text
  }

  /// Takes the four digits after `\u`, and the second half of a pair.
  private static func scalar(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
    let high = unit(rest.prefix(4))
    rest = rest.dropFirst(4)
    var code = high
    if (0xD800..<0xDC00).contains(high), rest.starts(with: "\\u".utf8) {
      let low = unit(rest.dropFirst(2).prefix(4))
      if (0xDC00..<0xE000).contains(low) {
        code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
        rest = rest.dropFirst(6)
      }
    }
    return Array(String(UnicodeScalar(code) ?? "\u{FFFD}").utf8)
  }

  private static func unit(_ digits: ArraySlice<UInt8>) -> UInt32 {
    digits.reduce(0) { $0 << 4 | UInt32(hexValue($1) ?? 0) }
  }

  static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - 0x30
    case UInt8(ascii: "a")...UInt8(ascii: "f"), UInt8(ascii: "A")...UInt8(ascii: "F"):
      (byte | 0x20) - 0x61 + 10
    default: nil
    }
  }
}
