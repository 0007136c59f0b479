#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension JSONValue {
  /// How deep arrays and objects may nest.
  package static let maximumDepth = 64

  /// Reads one JSON document (RFC 8259) in UTF-8, with or without a byte order mark.
  ///
  /// Beyond the standard it takes names without quotes and texts in single quotes, as the
  /// service does.
  ///
  /// - Throws: ``WireFormatError`` with the offset of the fault in bytes.
  package static func parse(_ text: some Collection<UInt8>) throws(WireFormatError) -> JSONValue {
    let result = text.withContiguousStorageIfAvailable { bytes in
      Result { () throws(WireFormatError) in try JSONParser.parse(bytes) }
    }
    if let result { return try result.get() }
    return try parse(Array(text))
  }
}

/// One pass over the bytes of a document.
private struct JSONParser {
  private let bytes: UnsafeBufferPointer<UInt8>
  private var position = 0

  static func parse(_ bytes: UnsafeBufferPointer<UInt8>) throws(WireFormatError) -> JSONValue {
    var parser = JSONParser(bytes: bytes)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { parser.position = 3 }
    let value = try parser.value(depth: 0)
    parser.skipBlanks()
    guard parser.position == bytes.count else { throw parser.fault("unexpected text") }
    return value
  }

  private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  private func fault(_ what: String) -> WireFormatError {
    .body("The JSON text is not well-formed: \(what) at offset \(position).")
  }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipBlanks() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0A, 0x0D: position += 1
      default: return
      }
    }
  }

  private mutating func value(depth: Int) throws(WireFormatError) -> JSONValue {
    skipBlanks()
    guard let first = next else { throw fault("a value is missing") }
    switch first {
    case UInt8(ascii: "{"): return try object(depth: depth + 1)
    case UInt8(ascii: "["): return try array(depth: depth + 1)
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string(try string(quote: first))
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    default:
      if take("true") { return .bool(true) }
      if take("false") { return .bool(false) }
      if take("null") { return .null }
      throw fault("unexpected text")
    }
  }

  /// Takes a word that ends where it should.
  private mutating func take(_ word: StaticString) -> Bool {
    let count = word.utf8CodeUnitCount
    guard bytes.count - position >= count else { return false }
    for offset in 0..<count where bytes[position + offset] != word.utf8Start[offset] {
      return false
    }
    let end = position + count
    if end < bytes.count, Self.isNameByte(bytes[end]) { return false }
    position = end
    return true
  }

  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"):
      true
    default: false
    }
  }

  private mutating func array(depth: Int) throws(WireFormatError) -> JSONValue {
    guard depth <= JSONValue.maximumDepth else { throw fault("too deep nesting") }
    position += 1
    var items: [JSONValue] = []
    skipBlanks()
    if next == UInt8(ascii: "]") {
      position += 1
      return .array(items)
    }
    while true {
      items.append(try value(depth: depth))
      if try isLast(before: UInt8(ascii: "]")) { return .array(items) }
    }
  }

  private mutating func object(depth: Int) throws(WireFormatError) -> JSONValue {
    guard depth <= JSONValue.maximumDepth else { throw fault("too deep nesting") }
    position += 1
    var members: [JSONValue.Member] = []
    skipBlanks()
    if next == UInt8(ascii: "}") {
      position += 1
      return .object(members)
    }
    while true {
      skipBlanks()
      let name = try name()
      skipBlanks()
      guard next == UInt8(ascii: ":") else { throw fault("':' expected") }
      position += 1
      members.append(JSONValue.Member(name, try value(depth: depth)))
      if try isLast(before: UInt8(ascii: "}")) { return .object(members) }
    }
  }

  /// Takes a comma, or the closing bracket.
  private mutating func isLast(before close: UInt8) throws(WireFormatError) -> Bool {
    skipBlanks()
    switch next {
    case UInt8(ascii: ","):
      position += 1
      return false
    case close:
      position += 1
      return true
    default: throw fault("',' or '\(UnicodeScalar(close))' expected")
    }
  }

  private mutating func name() throws(WireFormatError) -> String {
    if let quote = next, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
      return try string(quote: quote)
    }
    let start = position
    while let byte = next, Self.isNameByte(byte) { position += 1 }
    guard position > start else { throw fault("a member name is missing") }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func number() throws(WireFormatError) -> JSONValue {
    let start = position
    if next == UInt8(ascii: "-") { position += 1 }
    let leading = next
    let digits = skipDigits()
    guard digits > 0, digits == 1 || leading != UInt8(ascii: "0") else {
      throw fault("unexpected number")
    }
    if next == UInt8(ascii: ".") {
      position += 1
      guard skipDigits() > 0 else { throw fault("unexpected number") }
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      guard skipDigits() > 0 else { throw fault("unexpected number") }
    }
    return .number(String(decoding: bytes[start..<position], as: UTF8.self))
  }

  private mutating func skipDigits() -> Int {
    let start = position
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    return position - start
  }

  private mutating func string(quote: UInt8) throws(WireFormatError) -> String {
    position += 1
    let start = position
    var isASCII = true
    while position < bytes.count {
      let byte = bytes[position]
      if byte == quote {
        let run = bytes[start..<position]
        guard let text = isASCII ? String(decoding: run, as: UTF8.self) : Self.text(run) else {
          throw fault("text that is not UTF-8")
        }
        position += 1
        return text
      }
      if byte == UInt8(ascii: "\\") { return try escapedString(from: start, quote: quote) }
      if byte < 0x20 { throw fault("a control character in a text") }
      if byte >= 0x80 { isASCII = false }
      position += 1
    }
    throw fault("a text without its closing quote")
  }

  private static func text(_ run: some Collection<UInt8>) -> String? {
    String(bytes: run, encoding: .utf8)
  }

  /// Goes on with a text that has escapes; `position` is at the first backslash.
  private mutating func escapedString(
    from start: Int, quote: UInt8
  ) throws(WireFormatError) -> String {
    var out = Array(bytes[start..<position])
    while position < bytes.count {
      let byte = bytes[position]
      if byte == quote {
        guard let text = Self.text(out) else { throw fault("text that is not UTF-8") }
        position += 1
        return text
      }
      if byte < 0x20 { throw fault("a control character in a text") }
      position += 1
      if byte == UInt8(ascii: "\\") {
        try escape(into: &out)
      } else {
        out.append(byte)
      }
    }
    throw fault("a text without its closing quote")
  }

  private mutating func escape(into out: inout [UInt8]) throws(WireFormatError) {
    guard let kind = next else { throw fault("an unfinished escape") }
    position += 1
    switch kind {
    case UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: "\\"), UInt8(ascii: "/"):
      out.append(kind)
    case UInt8(ascii: "b"): out.append(0x08)
    case UInt8(ascii: "f"): out.append(0x0C)
    case UInt8(ascii: "n"): out.append(0x0A)
    case UInt8(ascii: "r"): out.append(0x0D)
    case UInt8(ascii: "t"): out.append(0x09)
    case UInt8(ascii: "u"):
      var scalar = try codeUnit()
      if scalar & 0xFC00 == 0xD800, position + 1 < bytes.count,
        bytes[position] == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u")
      {
        let before = position
        position += 2
        let low = try codeUnit()
        if low & 0xFC00 == 0xDC00 {
          scalar = 0x10000 + (scalar & 0x3FF) << 10 + low & 0x3FF
        } else {
          position = before
        }
      }
      // Half a surrogate pair has no UTF-8 form; it becomes the replacement character.
      out.append(contentsOf: String(UnicodeScalar(scalar) ?? "\u{FFFD}").utf8)
    default: throw fault("an unknown escape")
    }
  }

  private mutating func codeUnit() throws(WireFormatError) -> UInt32 {
    guard bytes.count - position >= 4 else { throw fault("an unfinished escape") }
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = hexDigit(bytes[position]) else { throw fault("an unknown escape") }
      unit = unit << 4 | UInt32(digit)
      position += 1
    }
    return unit
  }
}
