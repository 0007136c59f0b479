import COpenSSL

/// An RSA private key: signs the assertions of Google's service accounts (RS256).
package struct RSAPrivateKey: Sendable {
  let handle: KeyHandle

  /// Generates a new key.
  /// - Parameter bits: From 2048; a key of that size takes some tens of milliseconds.
  package init(bits: Int = 2048) throws(CryptographyError) {
    guard bits >= 2048, let pointer = belfry_generate_rsa(bits) else {
      throw .engine("make an RSA key")
    }
    handle = KeyHandle(owning: pointer)
  }

  /// Parses PEM text with a PKCS#8 or PKCS#1 block, or its base 64 body alone; line breaks may have
  /// been replaced with the two characters `\n`.
  /// - Throws: ``CryptographyError``: malformed, or unsupported for an encrypted key or another
  ///   kind of key.
  package init(pem text: String) throws(CryptographyError) {
    let handle = try PrivateKey.read(text)
    guard EVP_PKEY_is_a(handle.pointer, "RSA") == 1 else {
      throw CryptographyError(.unsupported, "The private key is not an RSA key.")
    }
    self.handle = handle
  }

  /// PKCS#8 as PEM text (`PRIVATE KEY`). Secret: never log it.
  package func pem() throws(CryptographyError) -> String {
    PEM.encode(label: "PRIVATE KEY", der: try handle.privateDER())
  }

  package func publicKey() throws(CryptographyError) -> RSAPublicKey {
    try RSAPublicKey(der: try handle.publicDER())
  }

  /// SHA-256 of the private number. It tells keys apart, as the public half does not, which can be
  /// copied into another key.
  package func identity() throws(CryptographyError) -> [UInt8] { try handle.identity() }

  /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518, section 3.3).
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try handle.signature(for: message)
  }
}

/// An RSA public key.
package struct RSAPublicKey: Sendable, Equatable {
  private let handle: KeyHandle
  /// SubjectPublicKeyInfo.
  package let der: [UInt8]

  /// Parses a SubjectPublicKeyInfo.
  /// - Throws: ``CryptographyError`` for anything but an RSA key.
  package init(der: [UInt8]) throws(CryptographyError) {
    guard let handle = KeyHandle(publicDER: der), EVP_PKEY_is_a(handle.pointer, "RSA") == 1 else {
      throw CryptographyError(.unsupported, "The public key is not an RSA key.")
    }
    self.handle = handle
    self.der = der
  }

  /// Parses PEM text with a `PUBLIC KEY` block.
  package init(pem: String) throws(CryptographyError) {
    try self.init(der: try PEM.publicKey(in: pem))
  }

  /// Uses the two numbers of a JSON web key (RFC 7518, section 6.3.1), the most significant byte
  /// first.
  /// - Throws: ``CryptographyError`` for a modulus of less than 2048 or more than 8192 bits, or
  ///   numbers that are not a key.
  package init(modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
    let modulus = Array(modulus.drop { $0 == 0 })
    guard (256...1024).contains(modulus.count), (1...8).contains(exponent.count) else {
      throw CryptographyError(.unsupported, "An RSA key must have 2048 to 8192 bits.")
    }
    func integer(_ bytes: [UInt8]) -> [UInt8] {
      DERReader.element(DERReader.Tag.integer, (bytes[0] >= 0x80 ? [0] : []) + bytes)
    }
    let numbers = DERReader.element(
      DERReader.Tag.sequence, integer(modulus) + integer(exponent))
    // The algorithm rsaEncryption with its NULL, then the numbers in a bit string.
    let algorithm: [UInt8] = [
      0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00,
    ]
    try self.init(
      der: DERReader.element(
        DERReader.Tag.sequence, algorithm + DERReader.element(0x03, [0] + numbers)))
  }

  /// PEM text (`PUBLIC KEY`).
  package var pem: String { PEM.encode(label: "PUBLIC KEY", der: der) }

  package static func == (left: Self, right: Self) -> Bool { left.der == right.der }

  /// Whether `signature` is one of this key over the SHA-256 of `message` (RSASSA-PKCS1-v1_5).
  package func verifies(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    handle.verifies(signature, for: message)
  }
}
