/// SplitMix64: the emulator's one source of ids, device tokens and fault dice. The same seed gives
/// the same ids again, also after a reset. Never used for keys.
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
  mutating func uuid() -> MessageID {
    let high = next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
    let low = next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    return MessageID(high: high, low: low, upperCase: true)
  }

  /// Ten characters as in Apple's key and team ids.
  mutating func appleID() -> String {
    let letters = Array("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
    return String((0..<10).map { _ in letters[Int(next() & 31)] })
  }
}
