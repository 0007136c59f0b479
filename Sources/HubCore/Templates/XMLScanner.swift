/// Reads an XML document without validating it, and notes where the values stand that can hold
/// expressions: attribute values, and the whole text of elements that have only text (spec
/// `templates.md` 3). An element with a comment or an instruction in it counts as mixed.
///
/// Checks that the document is well-formed, without its namespaces. Document type declarations are
/// refused, so there are no entities beyond the five of XML and nothing is ever fetched or
/// multiplied. Uses no recursion, and refuses nesting beyond ``depthLimit``.
struct XMLScanner {
  struct Value {
    /// The bytes to replace: between an attribute's quotes, or between an element's tags.
    let range: Range<Int>
    let isAttribute: Bool
    /// As a reader of the document would see it.
    let text: [UInt8]
  }

  private struct Element {
    let name: ArraySlice<UInt8>
    let contentStart: Int
    var isMixed = false
    var text: [UInt8] = []
  }

  static let depthLimit = 128

  let bytes: [UInt8]
  var position = 0
  private var open: [Element] = []
  private var values: [Value] = []

  /// The values of a document that begin like an expression, in their order.
  static func expressionValues(in bytes: [UInt8]) throws(SyntaxFault) -> [Value] {
    var scanner = XMLScanner(bytes: bytes)
    try scanner.document()
    return scanner.values
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private mutating func document() throws(SyntaxFault) {
    var hasRoot = false
    if starts(with: "\u{FEFF}") { position += 3 }
    while true {
      if open.isEmpty {
        skipBlanks()
        if position == bytes.count { break }
        guard peek() == UInt8(ascii: "<") else {
          throw SyntaxFault("text stands outside the root element", at: position)
        }
        let next = position + 1 < bytes.count ? bytes[position + 1] : 0
        if next.isNameStart {
          if hasRoot { throw SyntaxFault("there is a second root element", at: position) }
          hasRoot = true
        }
      } else if position == bytes.count {
        throw SyntaxFault("an element is not closed", at: position)
      }
      try peek() == UInt8(ascii: "<") ? markup() : text()
    }
    if !hasRoot { throw SyntaxFault("there is no root element", at: position) }
  }

  private mutating func markup() throws(SyntaxFault) {
    if starts(with: "<!--") {
      try skip(past: "-->", from: 4, "the comment is not closed")
      markMixed()
    } else if starts(with: "<![CDATA["), !open.isEmpty {
      let start = position + 9
      try skip(past: "]]>", from: 9, "the CDATA section is not closed")
      append(bytes[start..<position - 3])
    } else if starts(with: "<!") {
      throw SyntaxFault("a declaration is not allowed here", at: position)
    } else if starts(with: "<?") {
      try skip(past: "?>", from: 2, "the instruction is not closed")
      markMixed()
    } else if starts(with: "</") {
      try endTag()
    } else {
      try startTag()
    }
  }

  private mutating func startTag() throws(SyntaxFault) {
    guard open.count < Self.depthLimit else {
      throw SyntaxFault("nested deeper than \(Self.depthLimit) levels", at: position)
    }
    markMixed()
    position += 1
    let name = try self.name("an element's name")
    var attributes: Set<ArraySlice<UInt8>> = []
    while true {
      let before = position
      skipBlanks()
      if starts(with: "/>") {
        position += 2
        return
      }
      if peek() == UInt8(ascii: ">") {
        position += 1
        open.append(Element(name: name, contentStart: position))
        return
      }
      guard position > before else {
        throw SyntaxFault("a blank, '>' or '/>' is expected", at: position)
      }
      let start = position
      guard attributes.insert(try self.name("an attribute's name")).inserted else {
        throw SyntaxFault("the attribute stands twice in one tag", at: start)
      }
      try attributeValue()
    }
  }

  private mutating func attributeValue() throws(SyntaxFault) {
    skipBlanks()
    guard peek() == UInt8(ascii: "=") else {
      throw SyntaxFault("'=' is expected after the attribute's name", at: position)
    }
    position += 1
    skipBlanks()
    guard let quote = peek(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw SyntaxFault("the attribute's value must stand in quotes", at: position)
    }
    position += 1
    let start = position
    var text: [UInt8] = []
    while let byte = peek(), byte != quote {
      switch byte {
      case UInt8(ascii: "&"): text += try reference()
      case UInt8(ascii: "<"): throw SyntaxFault("'<' is not allowed in an attribute", at: position)
      default:
        try checkCharacter(byte)
        text.append(byte.isBlank ? 0x20 : byte)
        position += 1
      }
    }
    guard peek() != nil else {
      throw SyntaxFault("the attribute's value is not closed", at: start)
    }
    position += 1
    if TemplateExpression.isExpression(text.first) {
      values.append(Value(range: start..<position - 1, isAttribute: true, text: text))
    }
  }

  private mutating func endTag() throws(SyntaxFault) {
    let start = position
    position += 2
    let name = try self.name("an element's name")
    skipBlanks()
    guard let element = open.popLast(), element.name == name else {
      throw SyntaxFault("the end tag fits no open element", at: start)
    }
    guard peek() == UInt8(ascii: ">") else { throw SyntaxFault("'>' is expected", at: position) }
    position += 1
    if !element.isMixed, TemplateExpression.isExpression(element.text.first) {
      values.append(
        Value(range: element.contentStart..<start, isAttribute: false, text: element.text))
    }
  }

  private mutating func text() throws(SyntaxFault) {
    var start = position
    while let byte = peek(), byte != UInt8(ascii: "<") {
      if byte == UInt8(ascii: "&") {
        append(bytes[start..<position])
        append(try reference()[...])
        start = position
        continue
      }
      if byte == UInt8(ascii: "]"), starts(with: "]]>") {
        throw SyntaxFault("']]>' is not allowed in text", at: position)
      }
      try checkCharacter(byte)
      position += 1
    }
    append(bytes[start..<position])
  }

  private mutating func append(_ text: ArraySlice<UInt8>) {
    guard let last = open.indices.last, !open[last].isMixed else { return }
    open[last].text += text
  }

  private mutating func markMixed() {
    guard let last = open.indices.last else { return }
    open[last].isMixed = true
    open[last].text = []
  }
}
