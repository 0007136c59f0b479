import COpenSSL

/// Random bytes from the operating system by way of OpenSSL's generator; fit for keys.
package enum SecureRandom {
  /// - Parameter count: How many, from 0.
  package static func bytes(_ count: Int) throws(CryptographyError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    guard count == 0 || RAND_bytes(&bytes, Int32(count)) == 1 else {
      throw .engine("make random bytes")
    }
    return bytes
  }
}

/// Comparisons whose time does not depend on where two secrets differ.
package enum ConstantTime {
  /// True when both hold the same bytes. The lengths are not secret: different ones answer at once.
  package static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }
}
