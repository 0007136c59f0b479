/// The HPKE context of either side in base mode, after the key schedule (RFC 9180, section 5.1): a
/// key, and a nonce for each message.
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

  /// - Parameter sequence: The number of the message in this context, from 0. A number must never
  ///   be reused.
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

/// HKDF-SHA256 with the labels of RFC 9180, section 4.
struct LabeledDerivation: Sendable {
  private static let version = Array("HPKE-v1".utf8)

  /// The suite that all labels are bound to.
  let suiteID: [UInt8]

  /// - Returns: 32 bytes.
  func extract(salt: [UInt8] = [], label: String, _ secret: [UInt8]) throws -> [UInt8] {
    try Primitives.authenticationCode(
      of: Self.version + suiteID + Array(label.utf8) + secret, key: salt)
  }

  /// - Parameter count: At most 64 bytes: these suites never need more than two blocks.
  func expand(
    _ pseudorandomKey: [UInt8], label: String, info: [UInt8], count: Int
  ) throws -> [UInt8] {
    precondition(count <= 64)
    let labeled =
      HPKESuite.bytes(of: UInt16(count)) + Self.version + suiteID + Array(label.utf8) + info
    let first = try Primitives.authenticationCode(of: labeled + [1], key: pseudorandomKey)
    guard count > first.count else { return Array(first.prefix(count)) }
    let second = try Primitives.authenticationCode(
      of: first + labeled + [2], key: pseudorandomKey)
    return Array((first + second).prefix(count))
  }
}

/// DHKEM(X25519, HKDF-SHA256): RFC 9180, section 4.1.
enum KeyEncapsulation {
  private static let derivation = LabeledDerivation(suiteID: HPKESuite.encapsulationID)

  /// - Parameters:
  ///   - recipient: A public key, 32 bytes.
  ///   - ephemeral: A key for this message only. Tests pass the one of a test vector.
  /// - Returns: The shared secret, and the encapsulated key from which the recipient derives it; 32
  ///   bytes each.
  /// - Throws: An error for a public key of another length or of small order.
  static func encapsulate(
    to recipient: [UInt8], ephemeral: AgreementKey
  ) throws -> (secret: [UInt8], encapsulated: [UInt8]) {
    let encapsulated = ephemeral.publicKey
    let agreed = try ephemeral.sharedSecret(with: recipient)
    return (try secret(agreed, context: encapsulated + recipient), encapsulated)
  }

  /// - Parameter encapsulated: The encapsulated key from the sender's side.
  static func decapsulate(_ encapsulated: [UInt8], with key: AgreementKey) throws -> [UInt8] {
    let agreed = try key.sharedSecret(with: encapsulated)
    return try secret(agreed, context: encapsulated + key.publicKey)
  }

  private static func secret(_ agreed: [UInt8], context: [UInt8]) throws -> [UInt8] {
    let key = try derivation.extract(label: "eae_prk", agreed)
    return try derivation.expand(key, label: "shared_secret", info: context, count: 32)
  }
}

/// The algorithms of a sealed payload. All suites use DHKEM(X25519, HKDF-SHA256) and HKDF-SHA256
/// (RFC 9180, section 7); they differ in the cipher.
public enum HPKESuite: UInt8, CaseIterable, Hashable, Sendable {
  /// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM.
  case x25519AES128GCM = 1
  /// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305: for devices without hardware AES.
  case x25519ChaCha20Poly1305 = 3

  /// RFC 9180, section 7.1: DHKEM(X25519, HKDF-SHA256).
  static let encapsulation: UInt16 = 0x0020
  /// RFC 9180, section 7.2: HKDF-SHA256.
  static let derivation: UInt16 = 0x0001
  /// RFC 9180, section 7.3; equal to the raw value.
  var cipher: UInt16 { UInt16(rawValue) }

  /// The length of a key in bytes.
  var keyCount: Int { self == .x25519AES128GCM ? 16 : 32 }
  static let nonceCount = 12
  static let tagCount = 16

  /// The suite id for labels of the key encapsulation.
  static let encapsulationID = Array("KEM".utf8) + bytes(of: encapsulation)

  /// The suite id for labels of the key schedule.
  var id: [UInt8] {
    Array("HPKE".utf8) + Self.bytes(of: Self.encapsulation) + Self.bytes(of: Self.derivation)
      + Self.bytes(of: cipher)
  }

  /// Two bytes in big-endian order (`I2OSP`).
  static func bytes(of number: UInt16) -> [UInt8] {
    [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
  }
}
