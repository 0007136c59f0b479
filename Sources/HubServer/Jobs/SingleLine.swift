extension String {
  /// An XML document on one line: line ends inside texts become references, which read as the same.
  /// Inside CDATA there are no references; the section is closed for each of them.
  package var singleLine: String {
    guard utf8.contains(10) || utf8.contains(13) else { return self }
    var out = ""
    var rest = self[...]
    while let start = rest.firstRange(of: "<![CDATA[") {
      out += Self.referenced(rest[..<start.upperBound], inData: false)
      rest = rest[start.upperBound...]
      let end = rest.firstRange(of: "]]>")?.lowerBound ?? rest.endIndex
      out += Self.referenced(rest[..<end], inData: true)
      rest = rest[end...]
    }
    return out + Self.referenced(rest, inData: false)
  }

  private static func referenced(_ text: Substring, inData: Bool) -> String {
    let (open, close) = inData ? ("]]>", "<![CDATA[") : ("", "")
    var out = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": out += "\(open)&#xA;\(close)"
      case "\r": out += "\(open)&#xD;\(close)"
      default: out.unicodeScalars.append(scalar)
      }
    }
    return out
  }
}
