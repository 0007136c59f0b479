/// Walks over JSON text (RFC 8259) without building values: whether it is well-formed, and the few
/// members that decide something. A payload is looked at once per push when each device has its
/// own, so this must cost no allocation.
///
/// Nesting is followed with a stack of marks, not by calls, so depth costs a byte a level and the
/// text's own length bounds it.
struct JSONScanner {
  private let bytes: ArraySlice<UInt8>
  private var position: Int
  /// What the open levels are: `{` or `[`.
  private var open: [UInt8] = []

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    position = bytes.startIndex
  }

  init(_ bytes: [UInt8]) { self.init(bytes[...]) }

  /// Where reading goes on, as an index of the bytes given.
  var offset: Int { position }

  private var next: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

  /// The next byte that is no white space; it stays to be read.
  mutating func peek() -> UInt8? {
    while let byte = next {
      guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return byte }
      position += 1
    }
    return nil
  }

  /// True when only white space is left.
  mutating func isAtEnd() -> Bool { peek() == nil }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard peek() == byte else { return false }
    position += 1
    return true
  }

  /// Reads an object and shows each member's raw key. `member` must read the value, for example
  /// with ``skipValue()``.
  /// - Returns: False when what stands here is not a well-formed object or `member` says so.
  mutating func object(_ member: (ArraySlice<UInt8>, inout JSONScanner) -> Bool) -> Bool {
    guard take(UInt8(ascii: "{")) else { return false }
    if take(UInt8(ascii: "}")) { return true }
    repeat {
      guard let key = string(), take(UInt8(ascii: ":")), member(key, &self) else { return false }
    } while take(UInt8(ascii: ","))
    return take(UInt8(ascii: "}"))
  }

  /// Reads a string: the bytes between its quotes, escapes as they stand.
  mutating func string() -> ArraySlice<UInt8>? {
    guard take(UInt8(ascii: "\"")) else { return nil }
    let start = position
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return bytes[start..<(position - 1)]
      case UInt8(ascii: "\\"): guard skipEscape() else { return nil }
      case ..<0x20: return nil
      default: break
      }
    }
    return nil
  }

  private mutating func skipEscape() -> Bool {
    guard let kind = next else { return false }
    position += 1
    switch kind {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
      UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return true
    case UInt8(ascii: "u"):
      for _ in 0..<4 {
        guard let digit = next, Self.isHexDigit(digit) else { return false }
        position += 1
      }
      return true
    default: return false
    }
  }

  /// Reads a number: its text.
  mutating func number() -> ArraySlice<UInt8>? {
    guard peek() != nil else { return nil }
    let start = position
    if next == UInt8(ascii: "-") { position += 1 }
    if next == UInt8(ascii: "0") {
      position += 1
    } else if skipDigits() == 0 {
      return nil
    }
    if next == UInt8(ascii: ".") {
      position += 1
      guard skipDigits() > 0 else { return nil }
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      guard skipDigits() > 0 else { return nil }
    }
    return bytes[start..<position]
  }

  private mutating func skipDigits() -> Int {
    let start = position
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    return position - start
  }

  /// Reads any value, checking its form; false when it is not well-formed.
  mutating func skipValue() -> Bool {
    open.removeAll(keepingCapacity: true)
    repeat {
      guard let byte = peek() else { return false }
      switch byte {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        position += 1
        if !take(byte + 2) {  // "}" and "]" stand two places after their opening
          open.append(byte)
          if byte == UInt8(ascii: "{") { guard skipKey() else { return false } }
          continue
        }
      default: guard skipScalar(byte) else { return false }
      }
      guard closeLevels() else { return false }
    } while !open.isEmpty
    return true
  }

  /// After a value: a comma leads to the next one, closing marks end levels.
  private mutating func closeLevels() -> Bool {
    while let level = open.last {
      if take(UInt8(ascii: ",")) { return level == UInt8(ascii: "[") || skipKey() }
      guard take(level + 2) else { return false }
      open.removeLast()
    }
    return true
  }

  private mutating func skipKey() -> Bool { string() != nil && take(UInt8(ascii: ":")) }

  private mutating func skipScalar(_ first: UInt8) -> Bool {
    switch first {
    case UInt8(ascii: "\""): string() != nil
    case UInt8(ascii: "t"): skip("true")
    case UInt8(ascii: "f"): skip("false")
    case UInt8(ascii: "n"): skip("null")
    default: number() != nil
    }
  }

  private mutating func skip(_ word: StaticString) -> Bool {
    let count = word.utf8CodeUnitCount
    guard bytes.endIndex - position >= count else { return false }
    let matches = word.withUTF8Buffer { bytes[position..<(position + count)].elementsEqual($0) }
    position += count
    return matches
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }
}
