/// Hexadecimal text.
// Without @usableFromInline on the type, other modules do not inline its @inlinable members.
@usableFromInline package enum Hex {
  /// The value of a digit in either letter case; `nil` when it is none.
  @inlinable package static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x61...0x66: digit - 0x61 + 10
    case 0x41...0x46: digit - 0x41 + 10
    default: nil
    }
  }

  /// The lower-case digit of the lowest four bits.
  @inlinable package static func digit(_ value: UInt8) -> UInt8 {
    let value = value & 15
    return value < 10 ? 0x30 + value : 0x61 + value - 10
  }

  /// The upper-case digit of the lowest four bits.
  @inlinable package static func upperDigit(_ value: UInt8) -> UInt8 {
    let value = value & 15
    return value < 10 ? 0x30 + value : 0x41 + value - 10
  }

  /// Lower-case digits, two for each byte.
  package static func encode(_ bytes: some Collection<UInt8>) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      out.append(digit(byte >> 4))
      out.append(digit(byte))
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Upper-case digits, two for each byte.
  package static func encodeUpper(_ bytes: some Collection<UInt8>) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      out.append(upperDigit(byte >> 4))
      out.append(upperDigit(byte))
    }
    return String(decoding: out, as: UTF8.self)
  }

  /// Digits of either case; `nil` for an odd number of them or any other character.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var out: [UInt8] = []
    out.reserveCapacity(text.utf8.count / 2)
    var digits = text.utf8.makeIterator()
    while let first = digits.next() {
      guard let high = value(first), let low = digits.next().flatMap(value) else { return nil }
      out.append(high << 4 | low)
    }
    return out
  }

  /// The eight lower-case digits of a number, the first at the lowest address.
  @inlinable package static func digits(_ number: UInt32) -> UInt64 {
    // A digit in each byte, by three steps that each halve the distance between neighbors.
    var digits = UInt64(number)
    digits = (digits | digits << 16) & 0x0000_FFFF_0000_FFFF
    digits = (digits | digits << 8) & 0x00FF_00FF_00FF_00FF
    digits = (digits | digits << 4) & 0x0F0F_0F0F_0F0F_0F0F
    // A one in the bytes of 10 to 15: `a` is 39 above `:`, the character after `9`.
    let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return (digits &+ 0x3030_3030_3030_3030 &+ letters &* 39).bigEndian
  }
}

/// The canonical form of a UUID: 8-4-4-4-12 lower-case digits.
package enum UUIDText {
  private static let count = 36
  private static let hyphen = UInt8(ascii: "-")

  package static func append(high: UInt64, low: UInt64, to out: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: count) { text in
      write(high: high, low: low, to: text)
      out.append(contentsOf: text)
    }
  }

  package static func text(high: UInt64, low: UInt64) -> String {
    String(unsafeUninitializedCapacity: count) { text in
      write(high: high, low: low, to: text)
      return count
    }
  }

  private static func write(
    high: UInt64, low: UInt64, to text: UnsafeMutableBufferPointer<UInt8>
  ) {
    let text = UnsafeMutableRawBufferPointer(text)
    func put(_ digits: UInt64, at first: Int, _ second: Int) {
      withUnsafeBytes(of: digits) { digits in
        text[first..<first + 4].copyBytes(from: digits[..<4])
        text[second..<second + 4].copyBytes(from: digits[4...])
      }
    }
    put(Hex.digits(UInt32(truncatingIfNeeded: high >> 32)), at: 0, 4)
    put(Hex.digits(UInt32(truncatingIfNeeded: high)), at: 9, 14)
    put(Hex.digits(UInt32(truncatingIfNeeded: low >> 32)), at: 19, 24)
    put(Hex.digits(UInt32(truncatingIfNeeded: low)), at: 28, 32)
    (text[8], text[13], text[18], text[23]) = (hyphen, hyphen, hyphen, hyphen)
  }
}
