import COpenSSL

/// A private key on the curve P-256: signs provider tokens (ES256) and certificates.
package struct P256PrivateKey: Sendable {
  let handle: KeyHandle

  init(handle: KeyHandle) { self.handle = handle }

  /// Generates a new key.
  package init() throws(CryptographyError) {
    guard let pointer = belfry_generate_p256() else { throw .engine("make a P-256 key") }
    handle = KeyHandle(owning: pointer)
  }

  /// Parses PKCS#8 (`.p8` as Apple issues it) or SEC 1, as PEM text or as its base 64 body alone.
  /// - Throws: ``CryptographyError``: malformed, or unsupported for an encrypted key, another curve
  ///   or another kind of key.
  package init(pem text: String) throws(CryptographyError) {
    let handle = try PrivateKey.read(text)
    guard handle.isP256 else {
      throw CryptographyError(
        .unsupported, "The private key is not on the curve P-256 (prime256v1), which ES256 needs.")
    }
    self.handle = handle
  }

  /// PKCS#8 as PEM text (`PRIVATE KEY`). Secret: never log it.
  package func pem() throws(CryptographyError) -> String {
    PEM.encode(label: "PRIVATE KEY", der: try handle.privateDER())
  }

  package func publicKey() throws(CryptographyError) -> P256PublicKey {
    try P256PublicKey(der: try handle.publicDER())
  }

  /// The same key as a key of any kind.
  package var anyKey: PrivateKey { PrivateKey(handle: handle) }

  /// ECDSA with SHA-256 in the form of JWS: r and s, 32 bytes each (RFC 7518, section 3.4).
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard let raw = ECDSASignature.raw(der: try handle.signature(for: message)) else {
      throw CryptographyError(.engine, "OpenSSL made a signature of an unexpected form.")
    }
    return raw
  }
}

extension P256PrivateKey {
  /// Uses the private scalar itself: 32 bytes, big-endian, the usual form of VAPID keys.
  /// - Throws: ``CryptographyError`` (malformed) for another length, zero, or a number that is not
  ///   below the curve's order.
  package init(scalar: [UInt8]) throws(CryptographyError) {
    // SEC 1 without the public key, which OpenSSL then computes (RFC 5915).
    let number = DERReader.element(DERReader.Tag.octetString, scalar)
    let der = DERReader.element(
      DERReader.Tag.sequence, [0x02, 0x01, 0x01] + number + Self.namedCurve)
    guard scalar.count == 32, scalar.contains(where: { $0 != 0 }),
      scalar.lexicographicallyPrecedes(Self.order),
      let handle = KeysInUse.shared.handle(privateDER: der), handle.isP256
    else {
      throw CryptographyError(
        .malformed, "The private key is not a P-256 key of 32 bytes.")
    }
    self.init(handle: handle)
  }

  /// The private number, 32 bytes. Secret: never log it.
  package func scalar() throws(CryptographyError) -> [UInt8] {
    try handle.number("priv", count: 32)
  }

  /// SHA-256 of the private number. It tells keys apart, as the public half does not, which can be
  /// copied into another key.
  package func identity() throws(CryptographyError) -> [UInt8] { try handle.identity() }

  /// The curve's order (SEC 2, section 2.4.2).
  private static let order: [UInt8] = [
    0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
    0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
  ]

  /// `[0] { OBJECT IDENTIFIER prime256v1 }`
  private static let namedCurve: [UInt8] = [
    0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07,
  ]
}
