/// Reads an XML 1.0 document token by token, with the position of each, and checks that it is
/// well-formed, except for its namespaces.
///
/// Document type declarations are refused, so there are no entities beyond the five of XML and
/// nothing is ever fetched or expanded repeatedly. It does not recurse. It reads the given bytes,
/// which the caller must keep valid; that they are UTF-8 is not checked.
package struct XMLScanner {
  /// The ranges are positions in ``bytes``; those of values and texts contain references verbatim.
  package enum Token: Hashable, Sendable {
    /// Its attributes come next, then ``tagEnd(isEmpty:)``.
    case startTag(name: Range<Int>)
    case attribute(name: Range<Int>, value: Range<Int>)
    /// - isEmpty: Whether the element ends with its start tag; no ``endTag(start:)`` comes then.
    case tagEnd(isEmpty: Bool)
    case endTag(start: Int)
    case text(Range<Int>)
    /// Inside a CDATA section.
    case characterData(Range<Int>)
    case comment
    /// An instruction, or the declaration, with its delimiters.
    case instruction(Range<Int>)
    /// The document is complete.
    case end
  }

  package let bytes: UnsafeBufferPointer<UInt8>
  /// The position of the next byte to read.
  package private(set) var position = 0
  private let depthLimit: Int
  /// The names of the open elements.
  private var open: [Range<Int>] = []
  private var hasRoot = false
  /// Inside a start tag: the element's name, and the attributes so far.
  private var tag: Range<Int>?
  private var attributes: Set<String> = []

  package init(_ bytes: UnsafeBufferPointer<UInt8>, depthLimit: Int = 128) {
    self.bytes = bytes
    self.depthLimit = depthLimit
    if starts(with: "\u{FEFF}") { position += 3 }
  }

  // MARK: Tokens

  /// - Throws: ``SyntaxFault``; nothing can be read after that.
  package mutating func next() throws(SyntaxFault) -> Token {
    if let tag { return try inside(tag) }
    if open.isEmpty { skipBlanks() }
    guard position < bytes.count else {
      guard open.isEmpty else { throw fault("an element is not closed") }
      guard hasRoot else { throw fault("there is no root element") }
      return .end
    }
    guard bytes[position] == UInt8(ascii: "<") else {
      guard !open.isEmpty else { throw fault("text stands outside the root element") }
      return .text(try text())
    }
    let start = position
    if starts(with: "<!--") {
      try skip(past: "-->", from: 4, "the comment is not closed")
      return .comment
    }
    if starts(with: "<![CDATA["), !open.isEmpty {
      try skip(past: "]]>", from: 9, "the CDATA section is not closed")
      let range = start + 9..<position - 3
      for index in range { try checkCharacter(index) }
      return .characterData(range)
    }
    if starts(with: "<!") { throw fault("a declaration is not allowed here") }
    if starts(with: "<?") {
      try skip(past: "?>", from: 2, "the instruction is not closed")
      return .instruction(start..<position)
    }
    return try starts(with: "</") ? endTag() : startTag()
  }

  /// A fault at the current position.
  package func fault(_ message: String) -> SyntaxFault { SyntaxFault(message, at: position) }

  /// The contents of a text or an attribute's value, with references resolved; blanks of an
  /// attribute become `0x20`, as XML requires of a parser.
  package func resolved(_ range: Range<Int>, isAttribute: Bool = false) -> [UInt8] {
    guard isAttribute || bytes[range].contains(UInt8(ascii: "&")) else {
      return Array(bytes[range])
    }
    var out: [UInt8] = []
    out.reserveCapacity(range.count)
    var index = range.lowerBound
    while index < range.upperBound {
      if bytes[index] == UInt8(ascii: "&"), let (scalar, end) = reference(at: index) {
        out.append(contentsOf: String(scalar).utf8)
        index = end
      } else {
        out.append(isAttribute && bytes[index].isBlank ? 0x20 : bytes[index])
        index += 1
      }
    }
    return out
  }

  // MARK: Reading

  private mutating func startTag() throws(SyntaxFault) -> Token {
    let start = position
    position += 1
    let name = try name("an element's name")
    guard !open.isEmpty || !hasRoot else {
      throw SyntaxFault("there is a second root element", at: start)
    }
    guard open.count < depthLimit else {
      throw SyntaxFault("nested deeper than \(depthLimit) levels", at: start)
    }
    hasRoot = true
    tag = name
    attributes.removeAll(keepingCapacity: true)
    return .startTag(name: name)
  }

  /// The next attribute of a start tag, or its end.
  private mutating func inside(_ element: Range<Int>) throws(SyntaxFault) -> Token {
    let before = position
    skipBlanks()
    if starts(with: "/>") {
      position += 2
      tag = nil
      return .tagEnd(isEmpty: true)
    }
    if byte == UInt8(ascii: ">") {
      position += 1
      tag = nil
      open.append(element)
      return .tagEnd(isEmpty: false)
    }
    guard position > before else { throw fault("a blank, '>' or '/>' is expected") }
    let start = position
    let name = try name("an attribute's name")
    guard attributes.insert(String(decoding: bytes[name], as: UTF8.self)).inserted else {
      throw SyntaxFault("the attribute stands twice in one tag", at: start)
    }
    return .attribute(name: name, value: try attributeValue())
  }

  private mutating func attributeValue() throws(SyntaxFault) -> Range<Int> {
    skipBlanks()
    guard byte == UInt8(ascii: "=") else {
      throw fault("'=' is expected after the attribute's name")
    }
    position += 1
    skipBlanks()
    guard let quote = byte, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw fault("the attribute's value must stand in quotes")
    }
    position += 1
    let start = position
    while let byte, byte != quote {
      if byte == UInt8(ascii: "<") { throw fault("'<' is not allowed in an attribute") }
      try character(byte)
    }
    guard byte != nil else { throw SyntaxFault("the attribute's value is not closed", at: start) }
    position += 1
    return start..<position - 1
  }

  private mutating func endTag() throws(SyntaxFault) -> Token {
    let start = position
    position += 2
    let name = try name("an element's name")
    skipBlanks()
    guard let element = open.popLast(), bytes[element].elementsEqual(bytes[name]) else {
      throw SyntaxFault("the end tag fits no open element", at: start)
    }
    guard byte == UInt8(ascii: ">") else { throw fault("'>' is expected") }
    position += 1
    return .endTag(start: start)
  }

  private mutating func text() throws(SyntaxFault) -> Range<Int> {
    let start = position
    while let byte, byte != UInt8(ascii: "<") {
      if byte == UInt8(ascii: "]"), starts(with: "]]>") {
        throw fault("']]>' is not allowed in text")
      }
      try character(byte)
    }
    return start..<position
  }

  /// Reads a byte of a text or a value, or a whole reference.
  private mutating func character(_ byte: UInt8) throws(SyntaxFault) {
    if byte == UInt8(ascii: "&") {
      guard let (_, end) = reference(at: position) else {
        throw fault("'&' begins no known reference; write '&amp;'")
      }
      position = end
    } else {
      try checkCharacter(position)
      position += 1
    }
  }

  /// Rejects control characters, U+FFFE and U+FFFF, which XML does not allow.
  private func checkCharacter(_ index: Int) throws(SyntaxFault) {
    let byte = bytes[index]
    if byte < 0x20, !byte.isBlank {
      throw SyntaxFault("a control character is not allowed in XML", at: index)
    }
    if byte == 0xEF, index + 2 < bytes.count, bytes[index + 1] == 0xBF, bytes[index + 2] >= 0xBE {
      throw SyntaxFault("the character is not allowed in XML", at: index)
    }
  }

  /// One of XML's five entities, or a character reference; `nil` for anything else.
  private func reference(at start: Int) -> (scalar: UnicodeScalar, end: Int)? {
    let body = bytes[(start + 1)...].prefix(12)
    guard let end = body.firstIndex(of: UInt8(ascii: ";")) else { return nil }
    var name = bytes[(start + 1)..<end]
    guard name.first == UInt8(ascii: "#") else {
      let scalar: UnicodeScalar? =
        switch String(decoding: name, as: UTF8.self) {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        default: nil
        }
      return scalar.map { ($0, end + 1) }
    }
    name = name.dropFirst()
    let radix: UInt32 = name.first == UInt8(ascii: "x") ? 16 : 10
    if radix == 16 { name = name.dropFirst() }
    guard !name.isEmpty else { return nil }
    var code: UInt32 = 0
    for digit in name {
      // At most eleven digits reach this point, but they can overflow.
      guard let value = Hex.value(digit), value < radix, code <= 0x10FFFF else { return nil }
      code = code * radix + UInt32(value)
    }
    guard code >= 0x20 || code == 0x09 || code == 0x0A || code == 0x0D, code & ~1 != 0xFFFE,
      let scalar = UnicodeScalar(code)
    else { return nil }
    return (scalar, end + 1)
  }

  /// Parses an element's or attribute's name. Characters beyond ASCII are accepted without a check.
  private mutating func name(_ what: String) throws(SyntaxFault) -> Range<Int> {
    let start = position
    guard let first = byte, Self.isNameStart(first) else { throw fault("\(what) is expected") }
    while let byte, Self.isNameStart(byte) || byte.isDigit || byte == 0x2D || byte == 0x2E {
      position += 1
    }
    return start..<position
  }

  private static func isNameStart(_ byte: UInt8) -> Bool {
    byte.isLetter || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ":") || byte >= 0x80
  }

  private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipBlanks() {
    while position < bytes.count, bytes[position].isBlank { position += 1 }
  }

  private mutating func skip(
    past end: StaticString, from offset: Int, _ message: String
  ) throws(SyntaxFault) {
    let start = position
    position += offset
    while position < bytes.count {
      if starts(with: end) {
        position += end.utf8CodeUnitCount
        return
      }
      position += 1
    }
    throw SyntaxFault(message, at: start)
  }

  private func starts(with word: StaticString) -> Bool {
    let count = word.utf8CodeUnitCount
    guard bytes.count - position >= count else { return false }
    for offset in 0..<count where bytes[position + offset] != word.utf8Start[offset] {
      return false
    }
    return true
  }
}
