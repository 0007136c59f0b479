// The primitives under HPKE: CryptoKit on Apple systems, OpenSSL elsewhere. HPKE itself is
// implemented here, because CryptoKit has it only from iOS 17 and OpenSSL only from 3.2. Both
// systems thus run the same code, which the RFC's test vectors check.

#if canImport(CryptoKit)
  import CryptoKit
  import Foundation
#else
  import Cryptography
#endif

enum Primitives {
  /// HMAC-SHA-256 (RFC 2104); 32 bytes.
  static func authenticationCode(of message: [UInt8], key: [UInt8]) throws -> [UInt8] {
    #if canImport(CryptoKit)
      return Array(HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key)))
    #else
      return try MessageAuthentication.code(of: message, key: key)
    #endif
  }

  /// SHA-256; 32 bytes.
  static func digest(of message: [UInt8]) -> [UInt8] {
    #if canImport(CryptoKit)
      return Array(SHA256.hash(data: message))
    #else
      return Digest.sha256(message)
    #endif
  }

  /// - Returns: The ciphertext followed by the tag of 16 bytes.
  static func seal(
    _ plaintext: [UInt8], suite: HPKESuite, key: [UInt8], nonce: [UInt8], associated: [UInt8]
  ) throws -> [UInt8] {
    #if canImport(CryptoKit)
      let key = SymmetricKey(data: key)
      switch suite {
      case .x25519AES128GCM:
        let box = try AES.GCM.seal(
          plaintext, using: key, nonce: AES.GCM.Nonce(data: nonce), authenticating: associated)
        return Array(box.ciphertext) + Array(box.tag)
      case .x25519ChaCha20Poly1305:
        let box = try ChaChaPoly.seal(
          plaintext, using: key, nonce: ChaChaPoly.Nonce(data: nonce), authenticating: associated)
        return Array(box.ciphertext) + Array(box.tag)
      }
    #else
      return try suite.authenticatedCipher.seal(
        plaintext, key: key, nonce: nonce, associated: associated)
    #endif
  }

  /// - Parameter sealed: At least 16 bytes.
  /// - Throws: An error if key, nonce, associated data and `sealed` do not match.
  static func open(
    _ sealed: [UInt8], suite: HPKESuite, key: [UInt8], nonce: [UInt8], associated: [UInt8]
  ) throws -> [UInt8] {
    #if canImport(CryptoKit)
      let key = SymmetricKey(data: key)
      let ciphertext = sealed.dropLast(HPKESuite.tagCount)
      let tag = sealed.suffix(HPKESuite.tagCount)
      switch suite {
      case .x25519AES128GCM:
        let box = try AES.GCM.SealedBox(
          nonce: AES.GCM.Nonce(data: nonce), ciphertext: ciphertext, tag: tag)
        return Array(try AES.GCM.open(box, using: key, authenticating: associated))
      case .x25519ChaCha20Poly1305:
        let box = try ChaChaPoly.SealedBox(
          nonce: ChaChaPoly.Nonce(data: nonce), ciphertext: ciphertext, tag: tag)
        return Array(try ChaChaPoly.open(box, using: key, authenticating: associated))
      }
    #else
      return try suite.authenticatedCipher.open(
        sealed, key: key, nonce: nonce, associated: associated)
    #endif
  }
}

/// A private key of X25519 (RFC 7748).
struct AgreementKey: Sendable {
  /// The length in bytes of a private key, a public key and a shared secret.
  static let count = 32

  #if canImport(CryptoKit)
    private let key: Curve25519.KeyAgreement.PrivateKey

    init() throws { key = Curve25519.KeyAgreement.PrivateKey() }

    init(rawRepresentation bytes: [UInt8]) throws {
      key = try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes)
    }

    var publicKey: [UInt8] { Array(key.publicKey.rawRepresentation) }

    func rawRepresentation() throws -> [UInt8] { Array(key.rawRepresentation) }

    /// - Throws: An error for a public key of another length or of small order.
    func sharedSecret(with other: [UInt8]) throws -> [UInt8] {
      let peer = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: other)
      let secret = try key.sharedSecretFromKeyAgreement(with: peer)
        .withUnsafeBytes { Array($0) }
      // RFC 9180, section 7.1.4: an all-zero secret is an error.
      guard secret.contains(where: { $0 != 0 }) else { throw SecurePushError.malformed }
      return secret
    }
  #else
    private let key: X25519PrivateKey

    init() throws { key = try X25519PrivateKey() }

    init(rawRepresentation bytes: [UInt8]) throws {
      key = try X25519PrivateKey(rawRepresentation: bytes)
    }

    var publicKey: [UInt8] { key.publicKey }

    func rawRepresentation() throws -> [UInt8] { try key.rawRepresentation() }

    /// - Throws: An error for a public key of another length or of small order.
    func sharedSecret(with other: [UInt8]) throws -> [UInt8] { try key.sharedSecret(with: other) }
  #endif
}

#if !canImport(CryptoKit)
  extension HPKESuite {
    fileprivate var authenticatedCipher: AuthenticatedCipher {
      switch self {
      case .x25519AES128GCM: .aes128GCM
      case .x25519ChaCha20Poly1305: .chaCha20Poly1305
      }
    }
  }
#endif
