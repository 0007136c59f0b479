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

  /// Appends the lowest `digits` lower-case digits of a number.
  @inlinable package static func append(_ number: UInt64, digits: Int, to out: inout [UInt8]) {
    for position in (0..<digits).reversed() {
      out.append(digit(UInt8(truncatingIfNeeded: number >> UInt64(4 * position))))
    }
  }
}

/// The canonical form of a UUID: 8-4-4-4-12 lower-case digits.
package enum UUIDText {
  package static func append(high: UInt64, low: UInt64, to out: inout [UInt8]) {
    Hex.append(high >> 32, digits: 8, to: &out)
    out.append(UInt8(ascii: "-"))
    Hex.append(high >> 16, digits: 4, to: &out)
    out.append(UInt8(ascii: "-"))
    Hex.append(high, digits: 4, to: &out)
    out.append(UInt8(ascii: "-"))
    Hex.append(low >> 48, digits: 4, to: &out)
    out.append(UInt8(ascii: "-"))
    Hex.append(low, digits: 12, to: &out)
  }

  package static func text(high: UInt64, low: UInt64) -> String {
    var out: [UInt8] = []
    out.reserveCapacity(36)
    append(high: high, low: low, to: &out)
    return String(decoding: out, as: UTF8.self)
  }
}
