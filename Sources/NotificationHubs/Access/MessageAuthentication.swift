#if canImport(CryptoKit)
  import CryptoKit
  import Foundation
#else
  import COpenSSL
#endif

/// HMAC-SHA-256 (RFC 2104): CryptoKit on Apple systems, OpenSSL elsewhere.
///
/// - Returns: 32 bytes.
func messageAuthenticationCode(of message: [UInt8], key: [UInt8]) -> [UInt8] {
  #if canImport(CryptoKit)
    return Array(HMAC<SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key)))
  #else
    var code = [UInt8](repeating: 0, count: 32)
    let written = HMAC(
      EVP_sha256(), key, Int32(clamping: key.count), message, message.count, &code, nil)
    // Reached only if OpenSSL lacks SHA-256 or is out of memory: no token may be minted or
    // accepted.
    precondition(written != nil, "OpenSSL cannot compute HMAC-SHA-256")
    return code
  #endif
}

/// A digest to tell byte strings apart: equal strings have equal digests, and collisions cannot be
/// found.
///
/// - Returns: 32 bytes, HMAC-SHA-256 under a publicly known key.
package func digest(of message: [UInt8]) -> [UInt8] {
  messageAuthenticationCode(of: message, key: Array("belfry".utf8))
}

/// Compares in constant time, so that the duration does not reveal how many bytes are equal.
func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  var difference: UInt8 = 0
  for index in left.indices { difference |= left[index] ^ right[index] }
  return difference == 0
}
