/// Whether a text is well-formed XML, and its outermost element; as far as a notification needs it:
/// no document type, no entities but XML's own five.
///
/// - SeeAlso: <https://www.w3.org/TR/xml/>
struct XMLOutline {
  private var bytes: ArraySlice<UInt8>

  /// How deep elements may stand in each other.
  private static let maxDepth = 64

  /// The name of the outermost element; `nil` when the text is not well-formed.
  static func root(of bytes: [UInt8]) -> String? {
    guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
    var outline = XMLOutline(bytes: bytes[...])
    if outline.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { outline.bytes.removeFirst(3) }
    return outline.readDocument()
  }

  private mutating func readDocument() -> String? {
    var open: [ArraySlice<UInt8>] = []
    var root: ArraySlice<UInt8>?
    while let byte = bytes.first {
      if byte != UInt8(ascii: "<") {
        guard readText(isOutside: open.isEmpty) else { return nil }
      } else if skip("<?") {
        guard skip(past: "?>") else { return nil }
      } else if skip("<!--") {
        guard skip(past: "-->") else { return nil }
      } else if !open.isEmpty, skip("<![CDATA[") {
        guard skip(past: "]]>") else { return nil }
      } else if skip("</") {
        guard let name = readName(), name == open.popLast() else { return nil }
        skipBlanks()
        guard skip(">") else { return nil }
      } else {
        bytes.removeFirst()
        guard let name = readName(), root == nil || !open.isEmpty, open.count < Self.maxDepth,
          let isEmpty = readAttributes()
        else { return nil }
        root = root ?? name
        if !isEmpty { open.append(name) }
      }
    }
    guard open.isEmpty, let root else { return nil }
    return String(decoding: root, as: UTF8.self)
  }

  // MARK: Parts

  /// Up to the next `<`.
  private mutating func readText(isOutside: Bool) -> Bool {
    let text = bytes.prefix { $0 != UInt8(ascii: "<") }
    bytes = bytes.dropFirst(text.count)
    if isOutside { return text.allSatisfy(Self.isBlank) }
    return Self.isText(text)
  }

  /// To the end of a start tag.
  /// - Returns: Whether the element has ended with it; `nil` for a fault.
  private mutating func readAttributes() -> Bool? {
    var names: Set<ArraySlice<UInt8>> = []
    while true {
      let hadBlank = skipBlanks()
      if skip("/>") { return true }
      if skip(">") { return false }
      guard hadBlank, let name = readName(), names.insert(name).inserted else { return nil }
      skipBlanks()
      guard skip("=") else { return nil }
      skipBlanks()
      guard let quote = bytes.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
      else { return nil }
      let value = bytes.prefix { $0 != quote }
      bytes = bytes.dropFirst(value.count)
      guard bytes.popFirst() != nil, !value.contains(UInt8(ascii: "<")), Self.isText(value)
      else { return nil }
    }
  }

  private mutating func readName() -> ArraySlice<UInt8>? {
    let name = bytes.prefix { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: ":"),
        UInt8(ascii: "-"), UInt8(ascii: "."), 0x80...:
        true
      default: false
      }
    }
    guard let first = name.first, !"0123456789-.".utf8.contains(first) else { return nil }
    bytes = bytes.dropFirst(name.count)
    return name
  }

  /// Whether there are only characters of XML, and references that it knows.
  private static func isText(_ text: ArraySlice<UInt8>) -> Bool {
    var rest = text
    while let byte = rest.popFirst() {
      if byte < 0x20, !isBlank(byte) { return false }
      guard byte == UInt8(ascii: "&") else { continue }
      let name = rest.prefix { $0 != UInt8(ascii: ";") }
      rest = rest.dropFirst(name.count)
      guard rest.popFirst() != nil, isReference(String(decoding: name, as: UTF8.self)) else {
        return false
      }
    }
    return true
  }

  private static func isReference(_ name: String) -> Bool {
    if ["amp", "lt", "gt", "quot", "apos"].contains(name) { return true }
    guard name.hasPrefix("#") else { return false }
    let digits = name.dropFirst()
    let number = digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
    guard let number, !"+-".contains(digits.first ?? "+") else { return false }
    return Unicode.Scalar(number) != nil && (number >= 0x20 || [9, 10, 13].contains(number))
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  // MARK: Moving on

  @discardableResult
  private mutating func skipBlanks() -> Bool {
    let blanks = bytes.prefix(while: Self.isBlank)
    bytes = bytes.dropFirst(blanks.count)
    return !blanks.isEmpty
  }

  private mutating func skip(_ word: String) -> Bool {
    guard bytes.starts(with: word.utf8) else { return false }
    bytes = bytes.dropFirst(word.utf8.count)
    return true
  }

  private mutating func skip(past end: String) -> Bool {
    let end = Array(end.utf8)
    while bytes.count >= end.count {
      if bytes.starts(with: end) {
        bytes = bytes.dropFirst(end.count)
        return true
      }
      bytes = bytes.dropFirst()
    }
    return false
  }
}
