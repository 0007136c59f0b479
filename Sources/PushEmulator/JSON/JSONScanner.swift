/// Walks over JSON text without building values, so that a payload can be checked on the hot path.
///
/// Strict RFC 8259 with two limits: `maxDepth` levels of nesting (the walk is recursive), and text
/// must be UTF-8. Offsets in errors count bytes from 0.
struct JSONScanner {
  /// Where the text stops being JSON.
  struct Fault: Error, Equatable {
    let offset: Int
    let what: String
  }

  static let maxDepth = 128

  let bytes: UnsafeBufferPointer<UInt8>
  private(set) var at = 0

  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  /// Whether the bytes are exactly one JSON object.
  static func isObject(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard isUTF8(bytes) else { return false }
    var scanner = JSONScanner(bytes)
    scanner.skipSpace()
    guard scanner.peek == UInt8(ascii: "{") else { return false }
    do throws(Fault) {
      try scanner.skipValue(depth: 0)
      try scanner.finish()
      return true
    } catch {
      return false
    }
  }

  static func isUTF8(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    if !bytes.contains(where: { $0 >= 0x80 }) { return true }
    return String(validating: bytes, as: UTF8.self) != nil
  }

  var peek: UInt8? { at < bytes.count ? bytes[at] : nil }

  func fault(_ what: String) -> Fault { Fault(offset: at, what: what) }

  mutating func skipSpace() {
    while let byte = peek, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { at += 1 }
  }

  /// Takes `byte` if it is next.
  mutating func take(_ byte: UInt8) -> Bool {
    guard peek == byte else { return false }
    at += 1
    return true
  }

  mutating func expect(_ byte: UInt8) throws(Fault) {
    guard take(byte) else { throw fault("expected '\(UnicodeScalar(byte))'") }
  }

  /// Only white space may follow.
  mutating func finish() throws(Fault) {
    skipSpace()
    if peek != nil { throw fault("text after the value") }
  }

  mutating func skipValue(depth: Int) throws(Fault) {
    guard depth < Self.maxDepth else { throw fault("nested too deeply") }
    skipSpace()
    switch peek {
    case UInt8(ascii: "{"):
      try skipMembers(close: UInt8(ascii: "}"), depth: depth, named: true)
    case UInt8(ascii: "["):
      try skipMembers(close: UInt8(ascii: "]"), depth: depth, named: false)
    case UInt8(ascii: "\""): _ = try skipString()
    case UInt8(ascii: "t"): try skipWord("true")
    case UInt8(ascii: "f"): try skipWord("false")
    case UInt8(ascii: "n"): try skipWord("null")
    default: _ = try skipNumber()
    }
  }

  private mutating func skipMembers(
    close: UInt8, depth: Int, named: Bool
  ) throws(Fault) {
    at += 1
    skipSpace()
    if take(close) { return }
    repeat {
      if named {
        skipSpace()
        _ = try skipString()
        skipSpace()
        try expect(UInt8(ascii: ":"))
      }
      try skipValue(depth: depth + 1)
      skipSpace()
    } while take(UInt8(ascii: ","))
    try expect(close)
  }

  mutating func skipWord(_ word: StaticString) throws(Fault) {
    for index in 0..<word.utf8CodeUnitCount {
      guard peek == word.utf8Start[index] else { throw fault("expected a value") }
      at += 1
    }
  }

  /// - Returns: The range between the quotes, and whether it holds escapes.
  mutating func skipString() throws(Fault) -> (range: Range<Int>, escaped: Bool) {
    try expect(UInt8(ascii: "\""))
    let start = at
    var escaped = false
    while at < bytes.count {
      let byte = bytes[at]
      at += 1
      if byte == UInt8(ascii: "\"") { return (start..<(at - 1), escaped) }
      if byte < 0x20 { throw fault("control character in a string") }
      guard byte == UInt8(ascii: "\\") else { continue }
      escaped = true
      guard let kind = peek else { break }
      at += 1
      switch kind {
      case UInt8(ascii: "u"):
        guard at + 4 <= bytes.count, bytes[at..<(at + 4)].allSatisfy({ HexDigit.value($0) != nil })
        else { throw fault("bad \\u escape") }
        at += 4
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
        UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
        break
      default: throw fault("bad escape in a string")
      }
    }
    throw fault("string without end")
  }

  /// - Returns: The number's range, and whether it has a fraction or exponent.
  mutating func skipNumber() throws(Fault) -> (range: Range<Int>, real: Bool) {
    let start = at
    var real = false
    _ = take(UInt8(ascii: "-"))
    if take(UInt8(ascii: "0")) {
    } else {
      guard skipDigits() > 0 else { throw fault("expected a value") }
    }
    if take(UInt8(ascii: ".")) {
      real = true
      guard skipDigits() > 0 else { throw fault("expected a digit") }
    }
    if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
      real = true
      if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
      guard skipDigits() > 0 else { throw fault("expected a digit") }
    }
    return (start..<at, real)
  }

  private mutating func skipDigits() -> Int {
    let start = at
    while let byte = peek, byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") { at += 1 }
    return at - start
  }
}
