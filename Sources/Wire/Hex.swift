/// Hexadecimal text.
package enum Hex {
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

  /// The 16 lower-case digits of a number.
  @inlinable package static func digits(_ number: UInt64) -> SIMD16<UInt8> {
    let bytes = unsafeBitCast(number.bigEndian, to: SIMD8<UInt8>.self)
    var digits = SIMD16<UInt8>()
    digits.evenHalf = bytes &>> 4
    digits.oddHalf = bytes & 15
    let isLetter = digits .> 9
    return digits &+ SIMD16(repeating: 0x30).replacing(with: 0x61 - 10, where: isLetter)
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
    let (high, low) = (Hex.digits(high), Hex.digits(low))
    for position in 0..<16 {
      // Hyphens follow 8, 12, 16 and 20 of the 32 digits.
      text[position + (position >= 8 ? 1 : 0) + (position >= 12 ? 1 : 0)] = high[position]
      text[position + 19 + (position >= 4 ? 1 : 0)] = low[position]
    }
    (text[8], text[13], text[18], text[23]) = (hyphen, hyphen, hyphen, hyphen)
  }
}
