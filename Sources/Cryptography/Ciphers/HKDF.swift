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

/// Keys derived from secrets by HMAC-SHA-256 (RFC 5869).
package enum HKDF {
  /// How many bytes ``expand(_:info:count:)`` can make: 255 blocks of 32.
  package static let maxCount = 255 * 32

  /// - Parameter salt: May be empty.
  /// - Returns: The pseudorandom key, 32 bytes.
  package static func extract(
    salt: [UInt8], secret: [UInt8]
  ) throws(CryptographyError) -> [UInt8] {
    try MessageAuthentication.code(of: secret, key: salt)
  }

  /// - Parameter count: At most ``maxCount``.
  package static func expand(
    _ pseudorandomKey: [UInt8], info: [UInt8], count: Int
  ) throws(CryptographyError) -> [UInt8] {
    guard (0...maxCount).contains(count) else {
      throw CryptographyError(.unsupported, "HKDF makes at most \(maxCount) bytes, not \(count).")
    }
    var output: [UInt8] = []
    var block: [UInt8] = []
    var number: UInt8 = 0
    while output.count < count {
      number += 1
      block = try MessageAuthentication.code(of: block + info + [number], key: pseudorandomKey)
      output += block
    }
    return Array(output.prefix(count))
  }
}
