#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension String {
  /// The text as XML character data: `&`, `<`, `>` are escaped, a carriage return is kept as a
  /// reference, characters that XML 1.0 does not allow are replaced with U+FFFD.
  package var xmlEscaped: String {
    let needsEscape = utf8.withBytes {
      $0.contains {
        $0 < 0x20 || $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: ">")
          || $0 == 0xEF
      }
    }
    guard needsEscape else { return self }
    var out = ""
    out.reserveCapacity(utf8.count + 16)
    for scalar in unicodeScalars {
      switch scalar {
      case "&": out += "&amp;"
      case "<": out += "&lt;"
      case ">": out += "&gt;"
      case "\r": out += "&#xD;"
      case "\t", "\n": out.unicodeScalars.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": out += "\u{FFFD}"
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}

extension String {
  /// The text as the value of an attribute in double quotes.
  package var xmlAttributeEscaped: String {
    guard utf8.contains(UInt8(ascii: "\"")) else { return xmlEscaped }
    // By scalars: followed by a combining mark, a quote is part of another character.
    var out = ""
    for scalar in xmlEscaped.unicodeScalars {
      if scalar == "\"" { out += "&quot;" } else { out.unicodeScalars.append(scalar) }
    }
    return out
  }

  /// The text as a CDATA section, split in two where the text contains the end mark itself
  /// (docs/protocol/rest.md, section 3.1). Characters that XML 1.0 does not allow become U+FFFD.
  package var xmlCharacterData: String {
    guard utf8.contains(where: { $0 < 0x20 || $0 == 0xEF || $0 == UInt8(ascii: "]") }) else {
      return "<![CDATA[\(self)]]>"
    }
    var known = ""
    known.unicodeScalars.append(
      contentsOf: unicodeScalars.map { scalar in
        switch scalar {
        case "\t", "\n", "\r": scalar
        case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": "\u{FFFD}"
        default: scalar
        }
      })
    let parts = known.components(separatedBy: "]]>")
    return "<![CDATA[" + parts.joined(separator: "]]]]><![CDATA[>") + "]]>"
  }
}
