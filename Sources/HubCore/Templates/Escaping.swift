import Wire

/// The escaping of a result for the document around it (docs/protocol/templates.md, section 6).
enum Escaping: Sendable {
  /// Inside the quotes of a JSON string.
  case json
  /// Between the tags of an XML element.
  case xmlText
  /// Inside an XML attribute's quotes, of either kind.
  case xmlAttribute
  /// A header's value: nothing is escaped; characters that would end the line are omitted.
  case header

  /// Appends UTF-8 text; characters without escapes are copied in runs.
  func write(_ text: ArraySlice<UInt8>, to output: inout [UInt8]) {
    var start = text.startIndex
    for index in text.indices {
      guard let escape = escape(text[index]) else { continue }
      output.append(contentsOf: text[start..<index])
      output.append(contentsOf: escape.utf8)
      start = index + 1
    }
    output.append(contentsOf: text[start...])
  }

  /// The escape of a byte; `nil` when it needs none.
  private func escape(_ byte: UInt8) -> String? {
    switch self {
    case .json: byte >= 0x20 && byte != 0x22 && byte != 0x5C ? nil : Self.json(byte)
    case .xmlText, .xmlAttribute:
      byte > 0x3E ? nil : Self.xml(byte, isAttribute: self == .xmlAttribute)
    case .header: byte == 0x0D || byte == 0x0A || byte == 0 ? String("") : nil
    }
  }

  private static func json(_ byte: UInt8) -> String {
    switch byte {
    case 0x22: "\\\""
    case 0x5C: "\\\\"
    case 0x08: "\\b"
    case 0x09: "\\t"
    case 0x0A: "\\n"
    case 0x0C: "\\f"
    case 0x0D: "\\r"
    default: "\\u00" + Hex.encode([byte])
    }
  }

  /// Control characters that XML 1.0 does not allow become U+FFFD; an attribute's line ends and
  /// tabs become references, because a parser would turn them into blanks.
  private static func xml(_ byte: UInt8, isAttribute: Bool) -> String? {
    switch byte {
    case UInt8(ascii: "&"): "&amp;"
    case UInt8(ascii: "<"): "&lt;"
    case UInt8(ascii: ">"): "&gt;"
    case UInt8(ascii: "\"") where isAttribute: "&quot;"
    case UInt8(ascii: "'") where isAttribute: "&apos;"
    case 0x09, 0x0A: isAttribute ? String("&#\(byte);") : nil
    case 0x0D: "&#13;"
    case ..<0x20: "\u{FFFD}"
    default: nil
    }
  }
}
