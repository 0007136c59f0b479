/// Percent-encoding of URL parts (RFC 3986, section 2.1).
package enum PercentEncoding {
  /// The text that `bytes` stand for, decoded once.
  ///
  /// - Parameter plusIsBlank: Whether `+` means a blank, as in form-encoded queries.
  /// - Returns: `nil` if an escape is cut short or not hexadecimal, if the result is not UTF-8, or
  ///   if it holds a NUL (no name of ours has one, and C code would cut the text there).
  package static func decode(
    _ bytes: some Collection<UInt8>, plusIsBlank: Bool = false
  ) -> String? {
    var plain = true
    for byte in bytes
    where byte == ASCII.percent || byte == 0 || (plusIsBlank && byte == ASCII.plus) {
      plain = false
      break
    }
    if plain { return String(validating: bytes, as: UTF8.self) }

    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var iterator = bytes.makeIterator()
    while let byte = iterator.next() {
      switch byte {
      case ASCII.percent:
        guard let high = iterator.next().flatMap(ASCII.hexadecimal),
          let low = iterator.next().flatMap(ASCII.hexadecimal)
        else { return nil }
        decoded.append(high << 4 | low)
      case ASCII.plus where plusIsBlank:
        decoded.append(ASCII.blank)
      default:
        decoded.append(byte)
      }
      if decoded.last == 0 { return nil }
    }
    return String(validating: decoded, as: UTF8.self)
  }
}
