import COpenSSL

/// Random bytes from the operating system through OpenSSL's generator; suitable for keys.
package enum SecureRandom {
  /// - Parameter count: Number of bytes, from 0.
  package static func bytes(_ count: Int) throws(CryptographyError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard count == 0 || RAND_bytes(&bytes, Int32(count)) == 1 else {
      throw .engine("make random bytes")
    }
    return bytes
  }
}

/// Comparisons whose time does not depend on the position at which two secrets differ.
package enum ConstantTime {
  /// Whether both have the same bytes. The lengths are not secret: different ones return at once.
  package static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }
}
