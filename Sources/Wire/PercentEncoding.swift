/// Percent-encoding of URL parts and forms (RFC 3986, section 2.1; WHATWG URL Standard, section
/// 5.2).
// As for ``Hex``.
@usableFromInline package enum PercentEncoding {
  /// The characters that are not encoded, besides letters and digits.
  package enum Style: Sendable {
    /// `-._~`, the unreserved characters of a URL.
    case url
    /// `*-._`; a blank becomes `+`.
    case form
    /// `-._`, as PHP's `urlencode`; a blank becomes `+`.
    case php
  }

  /// The media type of ``form(_:)``.
  package static let formType = "application/x-www-form-urlencoded"

  /// Appends the bytes, encoding those that need it as `%XX` in upper case.
  package static func append(
    _ bytes: some Sequence<UInt8>, _ style: Style = .url, to out: inout [UInt8]
  ) {
    for byte in bytes {
      switch byte {
      case _ where byte.isNameByte, UInt8(ascii: "-"), UInt8(ascii: "."): out.append(byte)
      case UInt8(ascii: "~") where style == .url, UInt8(ascii: "*") where style == .form:
        out.append(byte)
      case UInt8(ascii: " ") where style != .url: out.append(UInt8(ascii: "+"))
      default:
        out.append(UInt8(ascii: "%"))
        out.append(Hex.upperDigit(byte >> 4))
        out.append(Hex.upperDigit(byte))
      }
    }
  }

  /// A body of the type ``formType``, the pairs in order.
  package static func form(_ fields: [(name: String, value: String)]) -> [UInt8] {
    var body: [UInt8] = []
    for (name, value) in fields {
      if !body.isEmpty { body.append(UInt8(ascii: "&")) }
      append(name.utf8, .form, to: &body)
      body.append(UInt8(ascii: "="))
      append(value.utf8, .form, to: &body)
    }
    return body
  }

  /// The text that `bytes` encode, decoded once.
  ///
  /// - Parameter plusIsBlank: Whether `+` means a blank, as in form-encoded queries.
  /// - Returns: `nil` if an escape is cut short or not hexadecimal, if the result is not UTF-8, or
  ///   if it holds a NUL (no name of ours has one, and C code would cut the text there).
  @inlinable package static func decode(
    _ bytes: some Collection<UInt8>, plusIsBlank: Bool = false
  ) -> String? {
    bytes.withBytes { decode($0, plusIsBlank: plusIsBlank) }
  }

  /// The bytes with every `%XX` decoded once; a `%` without two digits after it is kept.
  package static func decodeLeniently(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    bytes.withUnsafeBufferPointer { bytes in
      Array(unsafeUninitializedCapacity: bytes.count) { out, count in
        var index = 0
        while index < bytes.count {
          if bytes[index] == UInt8(ascii: "%"), index + 2 < bytes.count,
            let high = Hex.value(bytes[index + 1]), let low = Hex.value(bytes[index + 2])
          {
            out[count] = high << 4 | low
            index += 3
          } else {
            out[count] = bytes[index]
            index += 1
          }
          count += 1
        }
      }
    }
  }

  @usableFromInline package static func decode(
    _ bytes: UnsafeBufferPointer<UInt8>, plusIsBlank: Bool
  ) -> String? {
    let plus = UInt8(ascii: "+")
    let percent = UInt8(ascii: "%")
    guard bytes.contains(where: { $0 == percent || $0 == 0 || (plusIsBlank && $0 == plus) }) else {
      return String(checkingUTF8: bytes)
    }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var iterator = bytes.makeIterator()
    while let byte = iterator.next() {
      switch byte {
      case percent:
        guard let high = iterator.next().flatMap(Hex.value),
          let low = iterator.next().flatMap(Hex.value)
        else { return nil }
        decoded.append(high << 4 | low)
      case plus where plusIsBlank: decoded.append(0x20)
      default: decoded.append(byte)
      }
      if decoded.last == 0 { return nil }
    }
    return String(checkingUTF8: decoded)
  }
}

extension String {
  /// The text with everything but unreserved characters as `%XX`, digits in upper case.
  package var percentEncoded: String {
    var out: [UInt8] = []
    out.reserveCapacity(utf8.count + 16)
    PercentEncoding.append(utf8, to: &out)
    return String(decoding: out, as: UTF8.self)
  }

  /// The text with every `%XX` decoded once; a `%` without two digits after it is kept. Bytes that
  /// are not UTF-8 become the replacement character.
  package var percentDecoded: String {
    guard utf8.contains(UInt8(ascii: "%")) else { return self }
    return String(decoding: PercentEncoding.decodeLeniently(Array(utf8)[...]), as: UTF8.self)
  }
}
