/// Makes the ids of registrations and decodes the store's numbers from them, so that an id made by
/// the hub needs no column and no index in the store.
///
/// The form is that of the service, `{a}-{b}-{n}` (docs/protocol/rest.md, section 3.3): `a` is the
/// scrambled number, `b` a keyed hash of hub and number. Without the key an id cannot be guessed,
/// and an id of another hub, or of the original service, is not mistaken for one of ours.
package struct RegistrationIDCoding: Sendable {
  private let key: (UInt64, UInt64)

  /// - Parameter key: Random, secret, and constant for the lifetime of the store.
  package init(key: (UInt64, UInt64)) { self.key = key }

  private static let mask = UInt64(Int64.max)
  // Odd, so that it has an inverse modulo 2^63: the golden ratio's digits, as in SplitMix64.
  private static let factor: UInt64 = 0x1E37_79B9_7F4A_7C15
  private static let inverse: UInt64 = {
    // Newton's iteration doubles the number of correct bits, starting from three.
    var inverse = factor
    for _ in 0..<5 { inverse = inverse &* (2 &- factor &* inverse) }
    return inverse & mask
  }()

  /// The id of a registration.
  package func id(of number: RegistrationID, hub: Hub.ID) -> String {
    let scattered = UInt64(bitPattern: number) &* Self.factor & Self.mask
    return "\(scattered)-\(proof(of: number, hub: hub))-\(number % 3 + 1)"
  }

  /// The number in an id that this hub has made; `nil` for any other id.
  package func number(in id: String, hub: Hub.ID) -> RegistrationID? {
    let parts = id.split(separator: "-", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3, let scattered = UInt64(parts[0]), scattered <= Self.mask else {
      return nil
    }
    let number = RegistrationID(scattered &* Self.inverse & Self.mask)
    // Compares the whole text, because other spellings of the same numbers are other ids.
    return number > 0 && id == self.id(of: number, hub: hub) ? number : nil
  }

  private func proof(of number: RegistrationID, hub: Hub.ID) -> UInt64 {
    var hash = SipHash(key: key)
    hash.combine(UInt64(bitPattern: hub))
    hash.combine(UInt64(bitPattern: number))
    return hash.finish() & Self.mask
  }
}

/// SipHash-2-4 of whole 64-bit words: a short keyed hash that cannot be predicted without its key.
/// - SeeAlso: <https://www.aumasson.jp/siphash/siphash.pdf>
private struct SipHash {
  private var (v0, v1, v2, v3): (UInt64, UInt64, UInt64, UInt64)
  private var length: UInt64 = 0

  init(key: (UInt64, UInt64)) {
    v0 = key.0 ^ 0x736f_6d65_7073_6575
    v1 = key.1 ^ 0x646f_7261_6e64_6f6d
    v2 = key.0 ^ 0x6c79_6765_6e65_7261
    v3 = key.1 ^ 0x7465_6462_7974_6573
  }

  mutating func combine(_ word: UInt64) {
    length += 8
    compress(word)
  }

  mutating func finish() -> UInt64 {
    compress(length << 56)
    v2 ^= 0xff
    for _ in 0..<4 { round() }
    return v0 ^ v1 ^ v2 ^ v3
  }

  private mutating func compress(_ word: UInt64) {
    v3 ^= word
    round()
    round()
    v0 ^= word
  }

  private mutating func round() {
    v0 = v0 &+ v1
    v1 = v1 << 13 | v1 >> 51
    v1 ^= v0
    v0 = v0 << 32 | v0 >> 32
    v2 = v2 &+ v3
    v3 = v3 << 16 | v3 >> 48
    v3 ^= v2
    v0 = v0 &+ v3
    v3 = v3 << 21 | v3 >> 43
    v3 ^= v0
    v2 = v2 &+ v1
    v1 = v1 << 17 | v1 >> 47
    v1 ^= v2
    v2 = v2 << 32 | v2 >> 32
  }
}
