extension String {
  /// The text as XML character data: `&`, `<`, `>` escaped, a carriage return kept as a reference,
  /// characters that XML 1.0 does not know replaced by U+FFFD.
  package var xmlEscaped: String {
    guard utf8.contains(where: { $0 < 0x20 || $0 == 0xEF || "&<>".utf8.contains($0) })
    else { return self }
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
