import COpenSSL

/// A private key of X25519 (RFC 7748), for key agreement only.
package struct X25519PrivateKey: Sendable {
  /// Length in bytes of a private key, of a public key and of a shared secret.
  package static let count = 32

  private let handle: KeyHandle
  /// 32 bytes, which are not secret.
  package let publicKey: [UInt8]

  /// Generates a new key.
  package init() throws(CryptographyError) {
    try self.init(rawRepresentation: SecureRandom.bytes(Self.count))
  }

  /// - Parameter bytes: 32 bytes; every value is valid.
  package init(rawRepresentation bytes: [UInt8]) throws(CryptographyError) {
    guard bytes.count == Self.count else {
      throw CryptographyError(
        .malformed, "A private key of X25519 has \(Self.count) bytes, not \(bytes.count).")
    }
    guard let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nil, bytes, bytes.count) else {
      throw .engine("read an X25519 key")
    }
    handle = KeyHandle(owning: key)
    var point = [UInt8](repeating: 0, count: Self.count)
    var count = point.count
    guard EVP_PKEY_get_raw_public_key(key, &point, &count) == 1, count == Self.count else {
      throw .engine("compute an X25519 public key")
    }
    publicKey = point
  }

  /// The 32 bytes of the key. Secret: never log them.
  package func rawRepresentation() throws(CryptographyError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Self.count)
    var count = bytes.count
    guard EVP_PKEY_get_raw_private_key(handle.pointer, &bytes, &count) == 1, count == Self.count
    else { throw .engine("export an X25519 key") }
    return bytes
  }

  /// The shared secret of the two keys (RFC 7748, section 6.1).
  ///
  /// - Parameter other: The other side's public key, 32 bytes.
  /// - Returns: 32 bytes, to be passed to a key derivation function.
  /// - Throws: ``CryptographyError`` (malformed) for a public key of another length, or of small
  ///   order, which would give a publicly known secret.
  package func sharedSecret(with other: [UInt8]) throws(CryptographyError) -> [UInt8] {
    guard other.count == Self.count else {
      throw CryptographyError(
        .malformed, "A public key of X25519 has \(Self.count) bytes, not \(other.count).")
    }
    guard let peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nil, other, other.count) else {
      throw .engine("read an X25519 public key")
    }
    defer { EVP_PKEY_free(peer) }
    guard let context = EVP_PKEY_CTX_new(handle.pointer, nil) else {
      throw .engine("agree on a key")
    }
    defer {
      EVP_PKEY_CTX_free(context)
      OpenSSLErrors.drain()
    }
    var secret = [UInt8](repeating: 0, count: Self.count)
    var count = secret.count
    guard EVP_PKEY_derive_init(context) == 1, EVP_PKEY_derive_set_peer(context, peer) == 1,
      EVP_PKEY_derive(context, &secret, &count) == 1, count == Self.count,
      secret.contains(where: { $0 != 0 })
    else {
      throw CryptographyError(.malformed, "The other side's X25519 key is of small order.")
    }
    return secret
  }
}
