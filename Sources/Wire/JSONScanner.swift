/// Reads JSON text (RFC 8259) token by token, with the position of each. The same parser serves to
/// build a value, to validate a payload, and to fill in a document without changing its other
/// bytes.
///
/// It neither recurses nor allocates, so it is suitable for every payload that is sent. It reads
/// the given bytes, which the caller must keep valid.
package struct JSONScanner {
  package enum Token: Hashable, Sendable {
    case objectStart
    case objectEnd
    case arrayStart
    case arrayEnd
    /// A member's name.
    case key(Text)
    case string(Text)
    /// The digits, verbatim.
    case number(Range<Int>)
    case bool(Bool)
    case null
    /// The document is complete, followed only by blanks.
    case end
  }

  /// A string, as the range of the bytes between its quotes.
  package struct Text: Hashable, Sendable {
    package let range: Range<Int>
    package let hasEscapes: Bool
    package let isASCII: Bool
  }

  /// The accepted syntax beyond the standard.
  package enum Dialect: Sendable {
    case strict
    /// Also names without quotes and texts in single quotes, which the original service accepts.
    case lenient
  }

  private enum Expectation {
    case value
    case firstValue
    case key
    case firstKey
    case afterValue
  }

  /// Maximum depth limit of ``init(_:dialect:depthLimit:)``.
  package static let maximumDepth = 128

  package let bytes: UnsafeBufferPointer<UInt8>
  /// The position of the next byte to read.
  package private(set) var position = 0
  /// Number of open objects and arrays.
  package private(set) var depth = 0
  private let isLenient: Bool
  private let depthLimit: Int
  private var expectation = Expectation.value
  /// A bit for each open level, the innermost lowest: whether it is an object.
  private var objects: (low: UInt64, high: UInt64) = (0, 0)

  package init(
    _ bytes: UnsafeBufferPointer<UInt8>, dialect: Dialect = .strict,
    depthLimit: Int = maximumDepth
  ) {
    self.bytes = bytes
    isLenient = dialect == .lenient
    self.depthLimit = min(depthLimit, Self.maximumDepth)
  }

  /// A scanner of a whole document; a lenient one passes over a byte order mark.
  package init(
    document: UnsafeBufferPointer<UInt8>, dialect: Dialect, depthLimit: Int = maximumDepth
  ) {
    var bytes = document
    if dialect == .lenient, bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
      bytes = UnsafeBufferPointer(rebasing: bytes[3...])
    }
    self.init(bytes, dialect: dialect, depthLimit: depthLimit)
  }

  // MARK: Tokens

  /// - Throws: ``SyntaxFault``; nothing can be read after that.
  package mutating func next() throws(SyntaxFault) -> Token {
    skipBlanks()
    switch expectation {
    case .value: return try value()
    case .firstValue: return byte == UInt8(ascii: "]") ? close() : try value()
    case .key: return try key()
    case .firstKey: return byte == UInt8(ascii: "}") ? close() : try key()
    case .afterValue:
      guard depth > 0 else {
        if position == bytes.count { return .end }
        throw fault("something follows the end of the JSON document")
      }
      let isObject = objects.low & 1 == 1
      switch byte {
      case UInt8(ascii: ","):
        position += 1
        skipBlanks()
        return isObject ? try key() : try value()
      case UInt8(ascii: "}") where isObject, UInt8(ascii: "]") where !isObject: return close()
      default: throw fault("',' or '\(isObject ? "}" : "]")' is expected")
      }
    }
  }

  /// The name of the next member of the current object; `nil` when the object ends.
  package mutating func nextMember() throws(SyntaxFault) -> Text? {
    if case .key(let name) = try next() { name } else { nil }
  }

  /// Skips the next value with its contents; unlike ``skip(_:)`` it accepts texts that are not UTF-8.
  package mutating func skipValue() throws(SyntaxFault) {
    let level = depth
    repeat { _ = try next() } while depth > level
  }

  /// - Throws: ``SyntaxFault`` when the document does not end here.
  package mutating func finish() throws(SyntaxFault) {
    guard try next() == .end else { throw fault("the document does not end") }
  }

  /// Whether the bytes are exactly one JSON object in UTF-8.
  package static func isObject(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBufferPointer { buffer in
      var scanner = JSONScanner(buffer)
      guard scanner.peek() == UInt8(ascii: "{") else { return false }
      do throws(SyntaxFault) {
        try scanner.skipValue()
        try scanner.finish()
      } catch {
        return false
      }
      return !buffer.contains { $0 >= 0x80 } || String(checkingUTF8: buffer) != nil
    }
  }

  /// The first non-blank byte, without consuming it: after a name, that of its value.
  package mutating func peek() -> UInt8? {
    skipBlanks()
    return byte
  }

  /// A fault at the current position.
  package func fault(_ message: String) -> SyntaxFault { SyntaxFault(message, at: position) }

  // MARK: Texts

  /// Whether the bytes between a string's quotes are exactly these.
  package func matches(_ text: Text, _ word: StaticString) -> Bool {
    let count = word.utf8CodeUnitCount
    guard text.range.count == count else { return false }
    for offset in 0..<count where bytes[text.range.lowerBound + offset] != word.utf8Start[offset] {
      return false
    }
    return true
  }

  /// Whether the text, with escapes resolved, is this one but for the case of ASCII letters.
  package func matchesIgnoringCase(_ text: Text, _ word: StaticString) -> Bool {
    let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    if text.hasEscapes {
      // An escape of one character has six bytes at most.
      return text.range.count <= 6 * word.count && unescaped(text).isEqualIgnoringCase(word)
    }
    guard text.range.count == word.count else { return false }
    for index in 0..<word.count
    where bytes[text.range.lowerBound + index].foldedCapital != word[index].foldedCapital {
      return false
    }
    return true
  }

  /// - Throws: ``SyntaxFault`` when ``string(_:)`` would.
  package func checkUTF8(_ text: Text) throws(SyntaxFault) {
    if !text.isASCII { _ = try string(text) }
  }

  /// Skips the rest of the value that a token begins, and checks that its texts are UTF-8.
  package mutating func skip(_ token: Token) throws(SyntaxFault) {
    var token = token
    let level =
      switch token {
      case .objectStart, .arrayStart: depth - 1
      default: depth
      }
    while true {
      switch token {
      case .key(let text), .string(let text): try checkUTF8(text)
      default: break
      }
      if depth == level { return }
      token = try next()
    }
  }

  /// The contents of a string, with escapes resolved; an unpaired surrogate becomes U+FFFD.
  package func unescaped(_ text: Text) -> [UInt8] {
    guard text.hasEscapes else { return Array(bytes[text.range]) }
    return Array(unsafeUninitializedCapacity: text.range.count) { out, count in
      count = unescape(text, into: out)
    }
  }

  /// - Parameter out: As long as the text with its escapes, which are never shorter than what they
  ///   stand for.
  /// - Returns: The number of bytes written.
  private func unescape(_ text: Text, into out: UnsafeMutableBufferPointer<UInt8>) -> Int {
    var count = 0
    func append(_ byte: UInt8) {
      out[count] = byte
      count += 1
    }
    var index = text.range.lowerBound
    while index < text.range.upperBound {
      let byte = bytes[index]
      index += 1
      guard byte == UInt8(ascii: "\\") else {
        append(byte)
        continue
      }
      let letter = bytes[index]
      index += 1
      switch letter {
      case UInt8(ascii: "b"): append(0x08)
      case UInt8(ascii: "f"): append(0x0C)
      case UInt8(ascii: "n"): append(0x0A)
      case UInt8(ascii: "r"): append(0x0D)
      case UInt8(ascii: "t"): append(0x09)
      case UInt8(ascii: "u"): for byte in String(scalar(&index)).utf8 { append(byte) }
      default: append(letter)
      }
    }
    return count
  }

  /// As ``unescaped(_:)``, as a `String`.
  /// - Throws: ``SyntaxFault`` when the bytes are not UTF-8.
  package func string(_ text: Text) throws(SyntaxFault) -> String {
    // An escape always denotes valid text, but the bytes beside it may be invalid.
    if text.isASCII {
      guard text.hasEscapes else {
        return String(
          decoding: UnsafeBufferPointer(rebasing: bytes[text.range]), as: UTF8.self)
      }
      return String(unsafeUninitializedCapacity: text.range.count) { unescape(text, into: $0) }
    }
    guard let value = String(checkingUTF8: unescaped(text)) else {
      throw SyntaxFault("a text is not UTF-8", at: text.range.lowerBound)
    }
    return value
  }

  /// Reads the four digits after `\u`, and the second half of a pair.
  private func scalar(_ index: inout Int) -> UnicodeScalar {
    func unit(_ start: Int) -> UInt32 {
      bytes[start..<start + 4].reduce(0) { $0 << 4 | UInt32(Hex.value($1) ?? 0) }
    }
    var code = unit(index)
    index += 4
    // A string that has been scanned is followed by a quote: the compared bytes exist.
    if code & 0xFC00 == 0xD800, bytes[index] == UInt8(ascii: "\\"),
      bytes[index + 1] == UInt8(ascii: "u")
    {
      let low = unit(index + 2)
      if low & 0xFC00 == 0xDC00 {
        code = 0x10000 + (code & 0x3FF) << 10 + low & 0x3FF
        index += 6
      }
    }
    return UnicodeScalar(code) ?? "\u{FFFD}"
  }

  // MARK: Reading

  private var byte: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipBlanks() {
    while position < bytes.count, bytes[position].isBlank { position += 1 }
  }

  private mutating func open(isObject: Bool) throws(SyntaxFault) -> Token {
    guard depth < depthLimit else { throw fault("nested deeper than \(depthLimit) levels") }
    position += 1
    depth += 1
    objects.high = objects.high << 1 | objects.low >> 63
    objects.low = objects.low << 1 | (isObject ? 1 : 0)
    expectation = isObject ? .firstKey : .firstValue
    return isObject ? .objectStart : .arrayStart
  }

  private mutating func close() -> Token {
    let isObject = objects.low & 1 == 1
    position += 1
    depth -= 1
    objects.low = objects.low >> 1 | objects.high << 63
    objects.high >>= 1
    expectation = .afterValue
    return isObject ? .objectEnd : .arrayEnd
  }

  private mutating func key() throws(SyntaxFault) -> Token {
    let name: Text
    switch byte {
    case UInt8(ascii: "\""): name = try text(quote: UInt8(ascii: "\""))
    case UInt8(ascii: "'") where isLenient: name = try text(quote: UInt8(ascii: "'"))
    default:
      let start = position
      while isLenient, let byte, byte.isNameByte || byte == UInt8(ascii: "$") { position += 1 }
      guard position > start else { throw fault("a member's name in double quotes is expected") }
      name = Text(range: start..<position, hasEscapes: false, isASCII: true)
    }
    skipBlanks()
    guard byte == UInt8(ascii: ":") else { throw fault("':' is expected") }
    position += 1
    expectation = .value
    return .key(name)
  }

  private mutating func value() throws(SyntaxFault) -> Token {
    switch byte {
    case UInt8(ascii: "{"): return try open(isObject: true)
    case UInt8(ascii: "["): return try open(isObject: false)
    default: break
    }
    expectation = .afterValue
    switch byte {
    case UInt8(ascii: "\""): return .string(try text(quote: UInt8(ascii: "\"")))
    case UInt8(ascii: "'") where isLenient: return .string(try text(quote: UInt8(ascii: "'")))
    case UInt8(ascii: "t"):
      try word("true")
      return .bool(true)
    case UInt8(ascii: "f"):
      try word("false")
      return .bool(false)
    case UInt8(ascii: "n"):
      try word("null")
      return .null
    case let byte? where byte.isDigit || byte == UInt8(ascii: "-"): return .number(try number())
    default: throw fault("a JSON value is expected")
    }
  }

  private mutating func word(_ word: StaticString) throws(SyntaxFault) {
    let count = word.utf8CodeUnitCount
    guard bytes.count - position >= count else { throw fault("a JSON value is expected") }
    for offset in 0..<count where bytes[position + offset] != word.utf8Start[offset] {
      throw fault("a JSON value is expected")
    }
    position += count
  }

  private mutating func number() throws(SyntaxFault) -> Range<Int> {
    let start = position
    if byte == UInt8(ascii: "-") { position += 1 }
    if byte == UInt8(ascii: "0") { position += 1 } else { try digits(from: start) }
    if byte == UInt8(ascii: ".") {
      position += 1
      try digits(from: start)
    }
    if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") {
      position += 1
      if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { position += 1 }
      try digits(from: start)
    }
    if let byte, byte.isNameByte || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "+") {
      throw SyntaxFault("the number has a wrong form", at: start)
    }
    return start..<position
  }

  private mutating func digits(from start: Int) throws(SyntaxFault) {
    guard byte?.isDigit == true else { throw SyntaxFault("the number has a wrong form", at: start) }
    while byte?.isDigit == true { position += 1 }
  }

  private mutating func text(quote: UInt8) throws(SyntaxFault) -> Text {
    let start = position
    position += 1
    var hasEscapes = false
    var union: UInt8 = 0
    // Local copies, which the compiler keeps in registers: texts are most of a document.
    let bytes = bytes
    var index = position
    while index < bytes.count {
      let byte = bytes[index]
      if byte == quote {
        position = index + 1
        return Text(range: start + 1..<index, hasEscapes: hasEscapes, isASCII: union < 0x80)
      }
      union |= byte
      if byte == UInt8(ascii: "\\") {
        hasEscapes = true
        position = index
        try escape()
        index = position
      } else if byte < 0x20 {
        position = index
        throw fault("a control character must be escaped")
      } else {
        index += 1
      }
    }
    throw SyntaxFault("the string is not closed", at: start)
  }

  private mutating func escape() throws(SyntaxFault) {
    let start = position
    position += 1
    switch byte {
    case UInt8(ascii: "u"):
      position += 1
      for _ in 0..<4 {
        guard let digit = byte, Hex.value(digit) != nil else {
          throw SyntaxFault("four hexadecimal digits are expected after '\\u'", at: start)
        }
        position += 1
      }
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
      UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      position += 1
    case UInt8(ascii: "'") where isLenient: position += 1
    default: throw SyntaxFault("the escape is not known to JSON", at: start)
    }
  }
}
