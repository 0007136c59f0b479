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

extension RegistrationIDCoding {
  /// The beginning of hashes of what devices write. Nobody without the key finds other contents with
  /// the same hash, by which a device would be taken for unchanged.
  package var contentHash: SipHash { SipHash(key: (key.0 ^ 0x636f_6e74_656e_7473, key.1)) }
}
