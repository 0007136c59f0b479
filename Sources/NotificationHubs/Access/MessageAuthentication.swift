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
    // Only an OpenSSL without SHA-256, or out of memory, gets here: no token may be made or taken.
    precondition(written != nil, "OpenSSL cannot compute HMAC-SHA-256")
    return code
  #endif
}

/// Tells byte strings apart: equal ones have equal digests, and nobody can find two others that do.
///
/// - Returns: 32 bytes, HMAC-SHA-256 under a key that everybody knows.
package func digest(of message: [UInt8]) -> [UInt8] {
  messageAuthenticationCode(of: message, key: Array("belfry".utf8))
}

/// Compares without telling by the time it takes how much is equal.
func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  var difference: UInt8 = 0
  for index in left.indices { difference |= left[index] ^ right[index] }
  return difference == 0
}
