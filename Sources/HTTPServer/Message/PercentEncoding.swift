/// Percent-encoding of URL parts (RFC 3986, section 2.1).
package enum PercentEncoding {
  /// The text that `bytes` stand for, decoded once.
  ///
  /// - Parameter plusIsBlank: Whether `+` means a blank, as in form-encoded queries.
  /// - Returns: `nil` if an escape is cut short or not hexadecimal, if the result is not UTF-8, or
  ///   if it holds a NUL (no name of ours has one, and C code would cut the text there).
  package static func decode(
    _ bytes: some Collection<UInt8>, plusIsBlank: Bool = false
  ) -> String? {
    var plain = true
    for byte in bytes
    where byte == ASCII.percent || byte == 0 || (plusIsBlank && byte == ASCII.plus) {
      plain = false
      break
    }
    if plain { return String(validating: bytes, as: UTF8.self) }

    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var iterator = bytes.makeIterator()
    while let byte = iterator.next() {
      switch byte {
      case ASCII.percent:
        guard let high = iterator.next().flatMap(ASCII.hexadecimal),
          let low = iterator.next().flatMap(ASCII.hexadecimal)
        else { return nil }
        decoded.append(high << 4 | low)
      case ASCII.plus where plusIsBlank:
        decoded.append(ASCII.blank)
      default:
        decoded.append(byte)
      }
      if decoded.last == 0 { return nil }
    }
    return String(validating: decoded, as: UTF8.self)
  }
}

/// The few letters of HTTP's grammar that the code compares byte by byte.
enum ASCII {
  static let slash = UInt8(ascii: "/")
  static let backslash = UInt8(ascii: "\\")
  static let dot = UInt8(ascii: ".")
  static let semicolon = UInt8(ascii: ";")
  static let percent = UInt8(ascii: "%")
  static let plus = UInt8(ascii: "+")
  static let questionMark = UInt8(ascii: "?")
  static let ampersand = UInt8(ascii: "&")
  static let equals = UInt8(ascii: "=")
  static let tab = UInt8(ascii: "\t")
  static let blank = UInt8(ascii: " ")

  /// `A`–`Z` as `a`–`z`, everything else as it is.
  static func lowercase(_ byte: UInt8) -> UInt8 {
    byte &- 65 < 26 ? byte | 0x20 : byte
  }

  /// Whether two byte sequences are equal, letters without regard to case.
  static func equalIgnoringCase(
    _ left: some Collection<UInt8>, _ right: some Collection<UInt8>
  ) -> Bool {
    guard left.count == right.count else { return false }
    return zip(left, right).allSatisfy { lowercase($0) == lowercase($1) }
  }

  /// Whether a byte may stand in a token, such as a field's name (RFC 9110, section 5.6.2).
  static func isToken(_ byte: UInt8) -> Bool {
    // One bit for each of the 128 characters.
    let row: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
    return byte < 128 && row >> UInt64(byte & 63) & 1 == 1
  }

  static func isDigit(_ byte: UInt8) -> Bool { byte &- 48 < 10 }

  /// The value of a hexadecimal digit, or `nil`.
  static func hexadecimal(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
