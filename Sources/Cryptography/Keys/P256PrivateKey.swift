import COpenSSL

/// A private key on the curve P-256: signs provider tokens (ES256) and certificates.
package struct P256PrivateKey: Sendable {
  let handle: KeyHandle

  init(handle: KeyHandle) { self.handle = handle }

  /// Makes a new key.
  package init() throws(CryptographyError) {
    guard let pointer = belfry_generate_p256() else { throw .engine("make a P-256 key") }
    handle = KeyHandle(owning: pointer)
  }

  /// Reads PKCS#8 (`.p8` as Apple hands it out) or SEC 1, as PEM text or as its base 64 body alone.
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

  /// The same key for those who do not care about its kind.
  package var anyKey: PrivateKey { PrivateKey(handle: handle) }

  /// ECDSA with SHA-256, as JWS wants it: r and s, 32 bytes each (RFC 7518, section 3.4).
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard let context = EVP_MD_CTX_new() else { throw .engine("sign") }
    defer { EVP_MD_CTX_free(context) }
    var der = [UInt8](repeating: 0, count: 80)
    var count = der.count
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, handle.pointer) == 1,
      EVP_DigestSign(context, &der, &count, message, message.count) == 1
    else { throw .engine("sign") }
    guard let raw = ECDSASignature.raw(der: Array(der[..<count])) else {
      throw CryptographyError(.engine, "OpenSSL made a signature of an unexpected form.")
    }
    return raw
  }
}
