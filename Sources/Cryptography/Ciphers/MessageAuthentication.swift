import COpenSSL

/// HMAC-SHA-256 (RFC 2104).
package enum MessageAuthentication {
  /// - Returns: 32 bytes.
  package static func code(
    of message: [UInt8], key: [UInt8]
  ) throws(CryptographyError) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    let written = HMAC(
      EVP_sha256(), key, Int32(clamping: key.count), message, message.count, &code, nil)
    guard written != nil else { throw .engine("compute an HMAC") }
    return code
  }
}
