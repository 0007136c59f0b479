import COpenSSL

/// Diffie-Hellman on P-256 with keys that live for one message.
///
/// Uses OpenSSL's curve arithmetic directly, through the calls that its own key objects use
/// internally (both multiplications take constant time): creating and freeing such objects for
/// every message would cost as much again as the arithmetic.
///
/// Not `Sendable`: its scratch numbers belong to one task at a time. Owns its OpenSSL objects.
final class P256Agreement {
  static let pointCount = 65
  static let secretCount = 32

  private let group: OpaquePointer
  private let context: OpaquePointer
  private let number: OpaquePointer
  private let abscissa: OpaquePointer
  private let own: OpaquePointer
  private let other: OpaquePointer
  private let shared: OpaquePointer

  init() throws(CryptographyError) {
    guard let group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1),
      let context = BN_CTX_secure_new(), let number = BN_secure_new(),
      let abscissa = BN_secure_new(), let own = EC_POINT_new(group),
      let other = EC_POINT_new(group), let shared = EC_POINT_new(group)
    else { throw .engine("prepare P-256") }  // out of memory: what was made is lost with the rest
    (self.group, self.context, self.number) = (group, context, number)
    (self.abscissa, self.own, self.other, self.shared) = (abscissa, own, other, shared)
  }

  deinit {
    EC_POINT_clear_free(shared)
    EC_POINT_free(other)
    EC_POINT_free(own)
    BN_clear_free(abscissa)
    BN_clear_free(number)
    BN_CTX_free(context)
    EC_GROUP_free(group)
  }

  /// Generates a new random key.
  func makeKey() throws(CryptographyError) {
    repeat {
      guard BN_priv_rand_range(number, EC_GROUP_get0_order(group)) == 1 else {
        throw .engine("make a P-256 key")
      }
    } while BN_is_zero(number) == 1
    try deriveOwnPoint()
  }

  /// Uses a known key.
  func use(scalar: [UInt8]) throws(CryptographyError) {
    guard BN_bin2bn(scalar, Int32(clamping: scalar.count), number) != nil else {
      throw .engine("read a P-256 key")
    }
    try deriveOwnPoint()
  }

  private func deriveOwnPoint() throws(CryptographyError) {
    guard EC_POINT_mul(group, own, number, nil, nil, context) == 1 else {
      throw .engine("make a P-256 key")
    }
  }

  /// Writes the key's public point, uncompressed: 65 bytes.
  func writePoint(to bytes: UnsafeMutablePointer<UInt8>) throws(CryptographyError) {
    let count = EC_POINT_point2oct(
      group, own, POINT_CONVERSION_UNCOMPRESSED, bytes, Self.pointCount, context)
    guard count == Self.pointCount else { throw .engine("export a P-256 key") }
  }

  /// Writes the shared secret with the other side's key: 32 bytes.
  /// - Parameter point: 65 bytes.
  /// - Returns: False when `point` is not an uncompressed point of the curve.
  func writeSecret(
    with point: UnsafePointer<UInt8>, to bytes: UnsafeMutablePointer<UInt8>
  ) throws(CryptographyError) -> Bool {
    // Reading a point checks that it is on the curve; the form must be checked here.
    guard point[0] == 0x04,
      EC_POINT_oct2point(group, other, point, Self.pointCount, context) == 1
    else {
      OpenSSLErrors.drain()
      return false
    }
    guard EC_POINT_mul(group, shared, nil, other, number, context) == 1,
      EC_POINT_get_affine_coordinates(group, shared, abscissa, nil, context) == 1,
      BN_bn2binpad(abscissa, bytes, Int32(Self.secretCount)) == Int32(Self.secretCount)
    else { throw .engine("agree on a secret") }
    return true
  }
}
