import COpenSSL

extension Digest {
  /// MD5, 16 bytes: only where a push service's own protocol asks for it (ADM's checksum, Baidu's
  /// signature). It protects nothing.
  package static func md5(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 16)
    var count: UInt32 = 0
    _ = EVP_Digest(bytes, bytes.count, &digest, &count, EVP_md5(), nil)
    return digest
  }
}
