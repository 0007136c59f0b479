import COpenSSL

extension P256PrivateKey {
  /// Reads the private number itself: 32 bytes, big-endian, as VAPID keys are handed around.
  /// - Throws: ``CryptographyError`` (malformed) for another length, zero, or a number that is not
  ///   below the curve's order.
  package init(scalar: [UInt8]) throws(CryptographyError) {
    // SEC 1 without the public key, which OpenSSL then computes (RFC 5915).
    let number = DERReader.element(DERReader.Tag.octetString, scalar)
    let der = DERReader.element(
      DERReader.Tag.sequence, [0x02, 0x01, 0x01] + number + Self.namedCurve)
    guard scalar.count == 32, scalar.contains(where: { $0 != 0 }),
      scalar.lexicographicallyPrecedes(Self.order),
      let handle = KeyHandle(privateDER: der), handle.isP256
    else {
      throw CryptographyError(
        .malformed, "The private key is not a P-256 key of 32 bytes.")
    }
    self.init(handle: handle)
  }

  /// The private number, 32 bytes. Secret: never log it.
  package func scalar() throws(CryptographyError) -> [UInt8] {
    var number: OpaquePointer?
    guard EVP_PKEY_get_bn_param(handle.pointer, "priv", &number) == 1, let number else {
      throw .engine("export the private key")
    }
    defer { BN_clear_free(number) }
    var bytes = [UInt8](repeating: 0, count: 32)
    guard BN_bn2binpad(number, &bytes, 32) == 32 else { throw .engine("export the private key") }
    return bytes
  }

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
