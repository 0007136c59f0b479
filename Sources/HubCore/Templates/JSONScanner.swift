/// Reads a JSON document strictly (RFC 8259), token by token, with the place of each string: what
/// is filled into a document must leave every other byte as it was, which a decoder cannot do.
///
/// Uses no recursion, and refuses nesting beyond ``depthLimit``.
struct JSONScanner {
  enum Token: Equatable {
    case objectStart
    case objectEnd
    case arrayStart
    case arrayEnd
    /// A member's name: the bytes between the quotes.
    case key(Range<Int>)
    /// A string value: the bytes between the quotes.
    case string(Range<Int>)
    /// A number, `true` or `false`.
    case scalar(Range<Int>)
    case null
    /// The document is complete and nothing but blanks follow.
    case end
  }

  private enum Expectation {
    case value
    case firstValue
    case key
    case firstKey
    case afterValue
  }

  static let depthLimit = 128

  private let bytes: [UInt8]
  private(set) var position = 0
  private var expectation = Expectation.value
  /// For each open container, whether it is an object.
  private var open: [Bool] = []

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  mutating func next() throws(SyntaxFault) -> Token {
    skipBlanks()
    switch expectation {
    case .value: return try value()
    case .firstValue: return peek() == UInt8(ascii: "]") ? close() : try value()
    case .key: return try key()
    case .firstKey: return peek() == UInt8(ascii: "}") ? close() : try key()
    case .afterValue:
      guard let isObject = open.last else {
        if position == bytes.count { return .end }
        throw SyntaxFault("something follows the end of the JSON document", at: position)
      }
      switch peek() {
      case UInt8(ascii: ","):
        position += 1
        skipBlanks()
        return isObject ? try key() : try value()
      case UInt8(ascii: "}") where isObject, UInt8(ascii: "]") where !isObject: return close()
      default:
        throw SyntaxFault("',' or '\(isObject ? "}" : "]")' is expected", at: position)
      }
    }
  }

  private mutating func close() -> Token {
    position += 1
    expectation = .afterValue
    return open.removeLast() ? .objectEnd : .arrayEnd
  }

  private mutating func start(isObject: Bool) throws(SyntaxFault) -> Token {
    guard open.count < Self.depthLimit else {
      throw SyntaxFault("nested deeper than \(Self.depthLimit) levels", at: position)
    }
    position += 1
    open.append(isObject)
    expectation = isObject ? .firstKey : .firstValue
    return isObject ? .objectStart : .arrayStart
  }

  private mutating func key() throws(SyntaxFault) -> Token {
    guard peek() == UInt8(ascii: "\"") else {
      throw SyntaxFault("a member's name in double quotes is expected", at: position)
    }
    let range = try string()
    skipBlanks()
    guard peek() == UInt8(ascii: ":") else { throw SyntaxFault("':' is expected", at: position) }
    position += 1
    expectation = .value
    return .key(range)
  }

  private mutating func value() throws(SyntaxFault) -> Token {
    switch peek() {
    case UInt8(ascii: "{"): return try start(isObject: true)
    case UInt8(ascii: "["): return try start(isObject: false)
    default: break
    }
    expectation = .afterValue
    switch peek() {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return .scalar(try word("true"))
    case UInt8(ascii: "f"): return .scalar(try word("false"))
    case UInt8(ascii: "n"):
      _ = try word("null")
      return .null
    case let byte? where byte.isDigit || byte == UInt8(ascii: "-"): return .scalar(try number())
    default: throw SyntaxFault("a JSON value is expected", at: position)
    }
  }

  private mutating func word(_ word: StaticString) throws(SyntaxFault) -> Range<Int> {
    let start = position
    let length = word.utf8CodeUnitCount
    let isThere =
      bytes.count - start >= length
      && word.withUTF8Buffer { $0.elementsEqual(bytes[start..<start + length]) }
    guard isThere else { throw SyntaxFault("a JSON value is expected", at: start) }
    position += length
    return start..<position
  }

  private mutating func number() throws(SyntaxFault) -> Range<Int> {
    let start = position
    if peek() == UInt8(ascii: "-") { position += 1 }
    let unsigned = position
    while let byte = peek(), byte.isNameByte || byte == 0x2E || byte == 0x2B || byte == 0x2D {
      position += 1
    }
    guard TemplateExpression.isNumber(Array(bytes[unsigned..<position])) else {
      throw SyntaxFault("the number has a wrong form", at: start)
    }
    return start..<position
  }

  /// - Returns: What stands between the quotes, escapes and all.
  private mutating func string() throws(SyntaxFault) -> Range<Int> {
    let quote = position
    position += 1
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return quote + 1..<position - 1
      case UInt8(ascii: "\\"): try escape()
      case ..<0x20: throw SyntaxFault("a control character must be escaped", at: position)
      default: position += 1
      }
    }
    throw SyntaxFault("the string is not closed", at: quote)
  }

  private mutating func escape() throws(SyntaxFault) {
    let start = position
    position += 1
    switch peek() {
    case UInt8(ascii: "u"):
      let digits = bytes[(position + 1)...].prefix(4)
      guard digits.count == 4, digits.allSatisfy({ Self.hexValue($0) != nil }) else {
        throw SyntaxFault("four hexadecimal digits are expected after '\\u'", at: start)
      }
      position += 5
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
      UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      position += 1
    default: throw SyntaxFault("the escape is not known to JSON", at: start)
    }
  }

  private func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipBlanks() {
    while position < bytes.count, bytes[position].isBlank { position += 1 }
  }
}
