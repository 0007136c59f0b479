/// A message id in the UUID form of APNs, kept as 16 bytes and the case of its letters, so that it
/// can be echoed as received without keeping a string.
struct APNsMessageID: Hashable, Sendable {
  let high: UInt64
  let low: UInt64
  /// Lower-case digits by position are the rule; a set bit marks an upper-case letter (bit 31 is
  /// the first hex digit).
  private let upperCase: UInt32

  init(high: UInt64, low: UInt64, upperCase: Bool) {
    (self.high, self.low, self.upperCase) = (high, low, upperCase ? .max : 0)
  }

  /// Reads 8-4-4-4-12 hex digits of either case; `nil` when it is anything else.
  init?(_ text: UnsafeRawBufferPointer) {
    guard text.count == 36 else { return nil }
    var words: (UInt64, UInt64) = (0, 0)
    var upper: UInt32 = 0
    var digit = 0
    for (index, byte) in text.enumerated() {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let value = HexDigit.value(byte) else { return nil }
      if digit < 16 { words.0 = words.0 << 4 | UInt64(value) }
      if digit >= 16 { words.1 = words.1 << 4 | UInt64(value) }
      if byte >= UInt8(ascii: "A"), byte <= UInt8(ascii: "F") { upper |= 1 << (31 - digit) }
      digit += 1
    }
    (high, low, upperCase) = (words.0, words.1, upper)
  }

  init?(_ text: String) {
    var text = text
    guard let id = text.withUTF8({ APNsMessageID(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = id
  }

  /// Appends the 36 characters.
  func append(to out: inout [UInt8]) {
    for digit in 0..<32 {
      if digit == 8 || digit == 12 || digit == 16 || digit == 20 { out.append(UInt8(ascii: "-")) }
      let word = digit < 16 ? high : low
      let value = UInt8(truncatingIfNeeded: word >> UInt64((15 - digit & 15) * 4)) & 15
      let isUpper = upperCase & (1 << UInt32(31 - digit)) != 0
      let letter = isUpper ? UInt8(ascii: "A") : UInt8(ascii: "a")
      out.append(value < 10 ? UInt8(ascii: "0") + value : letter + value - 10)
    }
  }

  var text: String {
    var out: [UInt8] = []
    out.reserveCapacity(36)
    append(to: &out)
    return String(decoding: out, as: UTF8.self)
  }
}
