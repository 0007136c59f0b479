/// The two forms of a P-256 signature: r‖s of 64 bytes (JWS) and DER (OpenSSL).
package enum ECDSASignature {
  /// SEQUENCE { INTEGER r, INTEGER s } with the shortest integers; `nil` unless given 64 bytes.
  package static func der(raw: [UInt8]) -> [UInt8]? {
    guard raw.count == 64 else { return nil }
    return DERReader.element(
      DERReader.Tag.sequence, integer(raw[..<32]) + integer(raw[32...]))
  }

  /// r and s, big-endian, padded with zeros to 32 bytes each; `nil` for anything but strict DER of
  /// two non-negative integers of at most 256 bits.
  package static func raw(der: [UInt8]) -> [UInt8]? {
    var reader = DERReader(der)
    guard let contents = reader.read(DERReader.Tag.sequence), reader.isAtEnd else { return nil }
    var inner = DERReader(contents)
    guard let r = inner.read(DERReader.Tag.integer).flatMap(padded),
      let s = inner.read(DERReader.Tag.integer).flatMap(padded), inner.isAtEnd
    else { return nil }
    return r + s
  }

  private static func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    // Zero still needs a digit, and a set top bit would read as a negative number.
    if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
    return DERReader.element(DERReader.Tag.integer, digits)
  }

  private static func padded(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    guard let first = digits.first, first < 0x80 else { return nil }
    if first == 0, digits.count > 1 {
      guard let second = digits.dropFirst().first, second >= 0x80 else { return nil }
    }
    let magnitude = digits.drop { $0 == 0 }
    guard magnitude.count <= 32 else { return nil }
    return [UInt8](repeating: 0, count: 32 - magnitude.count) + magnitude
  }
}
