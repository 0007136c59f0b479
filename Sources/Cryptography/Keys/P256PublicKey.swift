/// A public key on the curve P-256.
package struct P256PublicKey: Sendable, Equatable {
  private let handle: KeyHandle
  /// SubjectPublicKeyInfo with the uncompressed point: one encoding per key.
  package let der: [UInt8]

  /// The prefix of the 65 bytes of the point in every SubjectPublicKeyInfo of this curve.
  private static let prefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A,
    0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
  ]

  /// Parses a SubjectPublicKeyInfo.
  /// - Throws: ``CryptographyError`` for another curve, a compressed point, or a point off the
  ///   curve.
  package init(der: [UInt8]) throws(CryptographyError) {
    guard der.count == Self.prefix.count + 65, der.starts(with: Self.prefix),
      der[Self.prefix.count] == 0x04
    else {
      throw CryptographyError(
        .unsupported, "The public key is not an uncompressed key on the curve P-256.")
    }
    guard let handle = KeyHandle(publicDER: der) else {
      throw CryptographyError(.malformed, "The public key is not a point of the curve P-256.")
    }
    self.handle = handle
    self.der = der
  }

  /// Reads PEM text with a `PUBLIC KEY` block.
  package init(pem: String) throws(CryptographyError) {
    try self.init(der: try PEM.publicKey(in: pem))
  }

  /// Reads the uncompressed point: 0x04, x, y; 65 bytes (X9.62).
  package init(point: [UInt8]) throws(CryptographyError) {
    try self.init(der: Self.prefix + point)
  }

  /// The uncompressed point: 0x04, x, y; 65 bytes.
  package var point: [UInt8] { Array(der.suffix(65)) }

  /// PEM text (`PUBLIC KEY`).
  package var pem: String { PEM.encode(label: "PUBLIC KEY", der: der) }

  package static func == (left: Self, right: Self) -> Bool { left.der == right.der }

  /// Whether `signature` (r and s, exactly 64 bytes, neither zero) is one of this key over the
  /// SHA-256 of `message`. Anything else is false, never an error.
  package func verifies(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    guard let der = ECDSASignature.der(raw: signature),
      signature[..<32].contains(where: { $0 != 0 }), signature[32...].contains(where: { $0 != 0 })
    else { return false }
    return handle.verifies(der, for: message)
  }
}
