extension JSON {
  /// Reads one JSON value.
  ///
  /// - Throws: `JSONScanner.Fault` with the offset of the first byte that does not fit. An object
  ///   that names a member twice is refused, because readers differ in which of the two counts.
  static func parse(_ bytes: [UInt8]) throws(JSONScanner.Fault) -> JSON {
    let result = bytes.withUnsafeBufferPointer { buffer -> Result<JSON, JSONScanner.Fault> in
      guard JSONScanner.isUTF8(buffer) else {
        return .failure(.init(offset: 0, what: "the text is not UTF-8"))
      }
      var scanner = JSONScanner(buffer)
      do throws(JSONScanner.Fault) {
        let value = try scanner.readValue(depth: 0)
        try scanner.finish()
        return .success(value)
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}

extension JSONScanner {
  fileprivate mutating func readValue(depth: Int) throws(Fault) -> JSON {
    guard depth < Self.maxDepth else { throw fault("nested too deeply") }
    skipSpace()
    switch peek {
    case UInt8(ascii: "{"): return try readObject(depth: depth)
    case UInt8(ascii: "["): return try readArray(depth: depth)
    case UInt8(ascii: "\""): return .string(try readString())
    case UInt8(ascii: "t"):
      try skipWord("true")
      return true
    case UInt8(ascii: "f"):
      try skipWord("false")
      return false
    case UInt8(ascii: "n"):
      try skipWord("null")
      return nil
    default: return try readNumber()
    }
  }

  private mutating func readArray(depth: Int) throws(Fault) -> JSON {
    try expect(UInt8(ascii: "["))
    skipSpace()
    if take(UInt8(ascii: "]")) { return [] }
    var items: [JSON] = []
    repeat {
      items.append(try readValue(depth: depth + 1))
      skipSpace()
    } while take(UInt8(ascii: ","))
    try expect(UInt8(ascii: "]"))
    return .array(items)
  }

  private mutating func readObject(depth: Int) throws(Fault) -> JSON {
    try expect(UInt8(ascii: "{"))
    skipSpace()
    if take(UInt8(ascii: "}")) { return .object([]) }
    var members: [JSON.Member] = []
    var names: Set<String> = []
    repeat {
      skipSpace()
      let name = try readString()
      guard names.insert(name).inserted else { throw fault("member '\(name)' twice") }
      skipSpace()
      try expect(UInt8(ascii: ":"))
      members.append(.init(name: name, value: try readValue(depth: depth + 1)))
      skipSpace()
    } while take(UInt8(ascii: ","))
    try expect(UInt8(ascii: "}"))
    return .object(members)
  }

  private mutating func readNumber() throws(Fault) -> JSON {
    let (range, real) = try skipNumber()
    let text = String(decoding: bytes[range], as: UTF8.self)
    if !real, let whole = Int64(text) { return .int(whole) }
    guard let number = Double(text), number.isFinite else { throw fault("number out of range") }
    return .double(number)
  }

  private mutating func readString() throws(Fault) -> String {
    let (range, escaped) = try skipString()
    guard escaped else { return String(decoding: bytes[range], as: UTF8.self) }
    var units: [UInt16] = []
    var text = ""
    var plain = range.lowerBound
    var index = range.lowerBound
    func flush(_ end: Int) {
      text += String(decoding: bytes[plain..<end], as: UTF8.self)
    }
    while index < range.upperBound {
      guard bytes[index] == UInt8(ascii: "\\") else {
        index += 1
        continue
      }
      flush(index)
      if bytes[index + 1] == UInt8(ascii: "u") {
        // Neighbouring \u escapes may be the halves of one character.
        units.removeAll()
        while index + 5 < range.upperBound, bytes[index] == UInt8(ascii: "\\"),
          bytes[index + 1] == UInt8(ascii: "u")
        {
          let hex = bytes[(index + 2)..<(index + 6)]
          units.append(hex.reduce(0) { $0 << 4 | UInt16(HexDigit.value($1) ?? 0) })
          index += 6
        }
        text += String(decoding: units, as: UTF16.self)
      } else {
        text += Self.unescaped(bytes[index + 1])
        index += 2
      }
      plain = index
    }
    flush(range.upperBound)
    return text
  }

  private static func unescaped(_ byte: UInt8) -> String {
    switch byte {
    case UInt8(ascii: "b"): "\u{8}"
    case UInt8(ascii: "f"): "\u{C}"
    case UInt8(ascii: "n"): "\n"
    case UInt8(ascii: "r"): "\r"
    case UInt8(ascii: "t"): "\t"
    default: String(UnicodeScalar(byte))
    }
  }
}
