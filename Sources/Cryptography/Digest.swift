import COpenSSL

/// Message digests.
package enum Digest {
  /// SHA-256, 32 bytes.
  package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    _ = SHA256(bytes, bytes.count, &digest)
    return digest
  }

  /// SHA-1, 20 bytes: only for certificate thumbprints, which the hub's wire format defines with
  /// it.
  package static func sha1(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 20)
    _ = SHA1(bytes, bytes.count, &digest)
    return digest
  }
}

extension Digest {
  /// MD5, 16 bytes: only where a push service's own protocol requires it (ADM's checksum, Baidu's
  /// signature). It protects nothing.
  package static func md5(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 16)
    var count: UInt32 = 0
    _ = EVP_Digest(bytes, bytes.count, &digest, &count, EVP_md5(), nil)
    return digest
  }
}

/// SHA-256 of data in pieces.
package final class SHA256Stream {
  /// Owned by this object.
  private let context: OpaquePointer

  package init() throws(CryptographyError) {
    guard let context = EVP_MD_CTX_new() else { throw .engine("hash") }
    self.context = context
    guard EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
      EVP_MD_CTX_free(context)
      throw .engine("hash")
    }
  }

  deinit { EVP_MD_CTX_free(context) }

  package func update(_ bytes: [UInt8]) { _ = EVP_DigestUpdate(context, bytes, bytes.count) }

  /// The digest of all data, 32 bytes; no data may be added afterwards.
  package func finish() -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    _ = EVP_DigestFinal_ex(context, &digest, nil)
    return digest
  }
}
