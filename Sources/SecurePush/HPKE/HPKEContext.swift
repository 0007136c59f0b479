/// What both sides of HPKE in base mode have after the key schedule (RFC 9180, section 5.1): a key
/// and a nonce for each message.
struct HPKEContext: Sendable {
  /// Base mode: no shared key, no key of the sender (RFC 9180, section 5, table 1).
  private static let mode: UInt8 = 0

  let suite: HPKESuite
  let key: [UInt8]
  let baseNonce: [UInt8]
  let exporterSecret: [UInt8]

  init(suite: HPKESuite, sharedSecret: [UInt8], info: [UInt8]) throws {
    let derivation = LabeledDerivation(suiteID: suite.id)
    let context =
      try [Self.mode] + derivation.extract(label: "psk_id_hash", [])
      + derivation.extract(label: "info_hash", info)
    let secret = try derivation.extract(salt: sharedSecret, label: "secret", [])
    self.suite = suite
    key = try derivation.expand(secret, label: "key", info: context, count: suite.keyCount)
    baseNonce = try derivation.expand(
      secret, label: "base_nonce", info: context, count: HPKESuite.nonceCount)
    exporterSecret = try derivation.expand(secret, label: "exp", info: context, count: 32)
  }

  /// - Parameter sequence: The number of the message under this context, from 0. Never the same
  ///   twice.
  func seal(_ plaintext: [UInt8], associated: [UInt8], sequence: UInt64 = 0) throws -> [UInt8] {
    try Primitives.seal(
      plaintext, suite: suite, key: key, nonce: nonce(sequence), associated: associated)
  }

  func open(_ sealed: [UInt8], associated: [UInt8], sequence: UInt64 = 0) throws -> [UInt8] {
    try Primitives.open(
      sealed, suite: suite, key: key, nonce: nonce(sequence), associated: associated)
  }

  private func nonce(_ sequence: UInt64) -> [UInt8] {
    var nonce = baseNonce
    for byte in 0..<8 {
      nonce[HPKESuite.nonceCount - 1 - byte] ^= UInt8(
        truncatingIfNeeded: sequence >> (8 * UInt64(byte)))
    }
    return nonce
  }
}
