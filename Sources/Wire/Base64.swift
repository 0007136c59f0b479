/// Base 64 with its two alphabets. Foundation's decoder takes only the padded standard form and is
/// silent about stray trailing bits; tokens need exactly one spelling per value.
package enum Base64 {
  /// RFC 4648 section 4, with padding.
  package static func encode(_ bytes: [UInt8]) -> String {
    encode(bytes, alphabet: standard, padded: true)
  }

  /// Decodes the standard alphabet; padding may be left out, white space and line ends are skipped.
  /// - Returns: `nil` for any other character, a wrong length, or non-zero trailing bits.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var digits = Array(text.utf8).filter { !($0 == 0x20 || (0x09...0x0D).contains($0)) }
    var padding = 0
    while digits.last == UInt8(ascii: "="), padding < 2 {
      digits.removeLast()
      padding += 1
    }
    guard padding == 0 || (digits.count + padding) % 4 == 0 else { return nil }
    return decode(digits, values: standardValues)
  }

  /// Decodes either alphabet, with or without padding, for values from many different writers.
  /// White space, other characters, a wrong length or non-zero trailing bits give `nil`.
  package static func decodeAnyAlphabet(_ text: some Collection<UInt8>) -> [UInt8]? {
    var digits = Array(text)
    while digits.count % 4 != 1, digits.last == UInt8(ascii: "=") { digits.removeLast() }
    return decode(digits, values: anyValues)
  }

  /// Decodes digits of the standard alphabet, without padding.
  /// - Returns: `nil` for any other byte, a wrong length, or non-zero trailing bits.
  package static func decode(digits: ArraySlice<UInt8>) -> [UInt8]? {
    decode(digits, values: standardValues)
  }

  fileprivate static let standard = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  fileprivate static let urlSafe = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
  fileprivate static let standardValues = values(of: standard)
  fileprivate static let urlSafeValues = values(of: urlSafe)
  private static let anyValues = zip(standardValues, urlSafeValues).map { min($0, $1) }

  private static func values(of alphabet: [UInt8]) -> [UInt8] {
    var values = [UInt8](repeating: 0xFF, count: 256)
    for (value, digit) in alphabet.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }

  fileprivate static func encode(_ bytes: [UInt8], alphabet: [UInt8], padded: Bool) -> String {
    var out: [UInt8] = []
    out.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      var bits: UInt32 = 0
      for byte in group { bits = bits << 8 | UInt32(byte) }
      bits <<= UInt32(8 * (3 - group.count))
      for digit in 0...group.count {
        out.append(alphabet[Int(bits >> UInt32(18 - 6 * digit) & 0x3F)])
      }
      if padded { out.append(contentsOf: repeatElement(0x3D, count: 3 - group.count)) }
    }
    return String(decoding: out, as: UTF8.self)
  }

  fileprivate static func decode(_ digits: some Collection<UInt8>, values: [UInt8]) -> [UInt8]? {
    guard digits.count % 4 != 1 else { return nil }
    var out: [UInt8] = []
    out.reserveCapacity(digits.count * 3 / 4)
    var bits: UInt32 = 0
    var count = 0
    for digit in digits {
      let value = values[Int(digit)]
      guard value != 0xFF else { return nil }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        out.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
      bits &= (1 << UInt32(count)) - 1
    }
    return bits == 0 ? out : nil
  }
}

/// The base 64 of JOSE: the URL-safe alphabet without padding (RFC 7515, appendix C).
package enum Base64URL {
  package static func encode(_ bytes: [UInt8]) -> String {
    Base64.encode(bytes, alphabet: Base64.urlSafe, padded: false)
  }

  /// Decodes strictly: `nil` for padding, white space, the standard alphabet's `+` and `/`, an
  /// impossible length, or non-zero trailing bits.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    Base64.decode(Array(text.utf8), values: Base64.urlSafeValues)
  }
}
