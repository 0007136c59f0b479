/// SplitMix64: the emulator's only source of ids, device tokens and random faults. The same seed
/// gives the same ids again, also after a reset. Never used for keys.
///
/// - SeeAlso: <https://prng.di.unimi.it/splitmix64.c>
struct SeededGenerator: RandomNumberGenerator, Sendable, Codable, Equatable {
  private(set) var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// From 0 up to but not including 1.
  mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// A random UUID (version 4) in upper case, as APNs makes them.
  mutating func uuid() -> APNsMessageID {
    let high = next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
    let low = next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    return APNsMessageID(high: high, low: low, upperCase: true)
  }

  /// Ten characters as in Apple's key and team ids.
  mutating func appleID() -> String {
    let letters = Array("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
    return String((0..<10).map { _ in letters[Int(next() & 31)] })
  }

  /// A number of base 64 URL characters.
  mutating func base64URL(_ count: Int) -> String {
    text(count, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
  }

  /// A number of lower-case hex digits.
  mutating func hex(_ count: Int) -> String { text(count, of: "0123456789abcdef") }

  /// A number of digits from 0 to 7, the first of them not 0, so that the number looks decimal.
  mutating func digits(_ count: Int) -> String {
    text(1, of: "12345678") + text(count - 1, of: "01234567")
  }

  /// - Parameter letters: 8, 16 or 64 of them, so that all are equally likely.
  private mutating func text(_ count: Int, of letters: some StringProtocol) -> String {
    let letters = Array(letters.utf8)
    var out: [UInt8] = []
    out.reserveCapacity(count)
    var bits: UInt64 = 0
    for place in 0..<max(0, count) {
      // Ten letters of six bits from each number.
      if place % 10 == 0 { bits = next() }
      out.append(letters[Int(truncatingIfNeeded: bits) & (letters.count - 1)])
      bits >>= 6
    }
    return String(decoding: out, as: UTF8.self)
  }
}
