extension XMLScanner {
  /// An element's or attribute's name. Characters beyond ASCII are taken as they are.
  mutating func name(_ what: String) throws(SyntaxFault) -> ArraySlice<UInt8> {
    let start = position
    guard let first = peek(), first.isNameStart else {
      throw SyntaxFault("\(what) is expected", at: position)
    }
    while let byte = peek(), byte.isNameStart || byte.isDigit || byte == 0x2D || byte == 0x2E {
      position += 1
    }
    return bytes[start..<position]
  }

  /// One of XML's five entities, or a character reference.
  mutating func reference() throws(SyntaxFault) -> [UInt8] {
    let start = position
    let body = bytes[(position + 1)...].prefix(12)
    guard let end = body.firstIndex(of: UInt8(ascii: ";")) else {
      throw SyntaxFault("'&' begins no known reference; write '&amp;'", at: start)
    }
    let name = bytes[(start + 1)..<end]
    position = end + 1
    switch String(decoding: name, as: UTF8.self) {
    case "amp": return [UInt8(ascii: "&")]
    case "lt": return [UInt8(ascii: "<")]
    case "gt": return [UInt8(ascii: ">")]
    case "quot": return [UInt8(ascii: "\"")]
    case "apos": return [UInt8(ascii: "'")]
    default: break
    }
    guard name.first == UInt8(ascii: "#"), let scalar = Self.scalar(name.dropFirst()) else {
      throw SyntaxFault("'&' begins no known reference; write '&amp;'", at: start)
    }
    return Array(String(scalar).utf8)
  }

  /// The digits of a character reference, `65` or `x41`.
  private static func scalar(_ digits: ArraySlice<UInt8>) -> UnicodeScalar? {
    let isHexadecimal = digits.first == UInt8(ascii: "x")
    let digits = isHexadecimal ? digits.dropFirst() : digits
    guard !digits.isEmpty else { return nil }
    var code: UInt32 = 0
    for digit in digits {
      guard let value = JSONScanner.hexValue(digit), isHexadecimal || value < 10 else { return nil }
      // At most eleven digits reach this place, but they can overflow.
      guard code <= 0x10FFFF else { return nil }
      code = code * (isHexadecimal ? 16 : 10) + UInt32(value)
    }
    guard code >= 0x20 || code == 0x09 || code == 0x0A || code == 0x0D else { return nil }
    return UnicodeScalar(code)
  }

  func checkCharacter(_ byte: UInt8) throws(SyntaxFault) {
    if byte < 0x20, !byte.isBlank {
      throw SyntaxFault("a control character is not allowed in XML", at: position)
    }
  }

  mutating func skip(past end: StaticString, from offset: Int, _ fault: String)
    throws(SyntaxFault)
  {
    let start = position
    position += offset
    while position < bytes.count {
      if starts(with: end) {
        position += end.utf8CodeUnitCount
        return
      }
      position += 1
    }
    throw SyntaxFault(fault, at: start)
  }

  func starts(with word: StaticString) -> Bool {
    let length = word.utf8CodeUnitCount
    guard bytes.count - position >= length else { return false }
    return word.withUTF8Buffer { $0.elementsEqual(bytes[position..<position + length]) }
  }

  func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

  mutating func skipBlanks() {
    while position < bytes.count, bytes[position].isBlank { position += 1 }
  }
}

extension UInt8 {
  /// A byte that an XML name can begin with; all bytes of characters beyond ASCII count.
  var isNameStart: Bool {
    isLetter || self == UInt8(ascii: "_") || self == UInt8(ascii: ":") || self >= 0x80
  }
}
