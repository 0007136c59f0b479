/// DHKEM(X25519, HKDF-SHA256): RFC 9180, section 4.1.
enum KeyEncapsulation {
  private static let derivation = LabeledDerivation(suiteID: HPKESuite.encapsulationID)

  /// - Parameters:
  ///   - recipient: A public key, 32 bytes.
  ///   - ephemeral: Used for this one message. Tests give the one of a vector.
  /// - Returns: The secret that both sides will have, and what the recipient needs for it; 32 bytes
  ///   each.
  /// - Throws: For a public key of another length or of small order.
  static func encapsulate(
    to recipient: [UInt8], ephemeral: AgreementKey
  ) throws -> (secret: [UInt8], encapsulated: [UInt8]) {
    let encapsulated = ephemeral.publicKey
    let agreed = try ephemeral.sharedSecret(with: recipient)
    return (try secret(agreed, context: encapsulated + recipient), encapsulated)
  }

  /// - Parameter encapsulated: What the sender's side returned.
  static func decapsulate(_ encapsulated: [UInt8], with key: AgreementKey) throws -> [UInt8] {
    let agreed = try key.sharedSecret(with: encapsulated)
    return try secret(agreed, context: encapsulated + key.publicKey)
  }

  private static func secret(_ agreed: [UInt8], context: [UInt8]) throws -> [UInt8] {
    let key = try derivation.extract(label: "eae_prk", agreed)
    return try derivation.expand(key, label: "shared_secret", info: context, count: 32)
  }
}
