/// Which algorithms a sealed payload uses. All suites encapsulate with DHKEM(X25519, HKDF-SHA256)
/// and derive with HKDF-SHA256 (RFC 9180, section 7); they differ in the cipher.
public enum HPKESuite: UInt8, CaseIterable, Hashable, Sendable {
  /// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM.
  case x25519AES128GCM = 1
  /// DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305: for devices without AES in
  /// hardware.
  case x25519ChaCha20Poly1305 = 3

  /// RFC 9180, section 7.1: DHKEM(X25519, HKDF-SHA256).
  static let encapsulation: UInt16 = 0x0020
  /// RFC 9180, section 7.2: HKDF-SHA256.
  static let derivation: UInt16 = 0x0001
  /// RFC 9180, section 7.3; the raw value is that number.
  var cipher: UInt16 { UInt16(rawValue) }

  /// In bytes.
  var keyCount: Int { self == .x25519AES128GCM ? 16 : 32 }
  static let nonceCount = 12
  static let tagCount = 16

  /// What labels of the key encapsulation are bound to.
  static let encapsulationID = Array("KEM".utf8) + bytes(of: encapsulation)

  /// What labels of the key schedule are bound to.
  var id: [UInt8] {
    Array("HPKE".utf8) + Self.bytes(of: Self.encapsulation) + Self.bytes(of: Self.derivation)
      + Self.bytes(of: cipher)
  }

  /// Two bytes, the most significant first (`I2OSP`).
  static func bytes(of number: UInt16) -> [UInt8] {
    [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
  }
}
