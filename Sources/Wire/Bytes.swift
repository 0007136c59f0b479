extension UInt8 {
  /// A blank, tab, line feed or carriage return.
  @inlinable package var isBlank: Bool {
    self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D
  }
  @inlinable package var isDigit: Bool { self >= 0x30 && self <= 0x39 }
  @inlinable package var isLetter: Bool { (self | 0x20) >= 0x61 && (self | 0x20) <= 0x7A }
  @inlinable package var isLetterOrDigit: Bool { isLetter || isDigit }
  /// A letter, a digit or `_`.
  @inlinable package var isNameByte: Bool { isLetterOrDigit || self == 0x5F }
  /// A character of base 64 URL.
  @inlinable package var isBase64URL: Bool { isNameByte || self == 0x2D }
  /// Whether it is a token character of HTTP, as in methods and names of header fields (RFC 9110,
  /// section 5.6.2).
  @inlinable package var isTokenByte: Bool {
    // One bit for each of the 128 characters.
    let row: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
    return self < 128 && row >> UInt64(self & 63) & 1 == 1
  }
}

extension UInt8 {
  /// The small letter of `A`–`Z`; other bytes are unchanged.
  @inlinable package var foldedCapital: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }
}

extension Collection<UInt8> {
  /// Calls `body` with the bytes in one piece, which are copied only if they are not: a text that came
  /// from Objective-C, or a lazy collection. Going through a generic collection, or a text, byte by
  /// byte takes several times as long.
  @inlinable package func withBytes<Value>(
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Value
  ) rethrows -> Value {
    if let value = try withContiguousStorageIfAvailable(body) { return value }
    return try Array(self).withUnsafeBufferPointer(body)
  }

  @inlinable package func hasSameBytes(as other: some Collection<UInt8>) -> Bool {
    withBytes { left in
      other.withBytes { right in
        // By index: `elementsEqual` takes several times as long.
        left.count == right.count && left.indices.allSatisfy { left[$0] == right[$0] }
      }
    }
  }

  /// Whether the bytes are equal but for the case of ASCII letters.
  @inlinable package func isEqualIgnoringCase(_ other: some Collection<UInt8>) -> Bool {
    guard count == other.count else { return false }
    return withBytes { left in
      other.withBytes { right in
        left.indices.allSatisfy { left[$0].foldedCapital == right[$0].foldedCapital }
      }
    }
  }
}

extension Collection<UInt8> {
  /// Whether all bytes are hexadecimal digits, in either letter case.
  @inlinable package var isHex: Bool { allSatisfy { Hex.value($0) != nil } }
}

extension BidirectionalCollection<UInt8> {
  /// The bytes without leading and trailing blanks, tabs and line ends.
  @inlinable package var trimmingBlanks: SubSequence {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    guard let start = firstIndex(where: { !isBlank($0) }),
      let end = lastIndex(where: { !isBlank($0) })
    else { return self[endIndex...] }
    return self[start...end]
  }
}

extension String {
  /// Whether this can be a method or the name of a header field.
  package var isHTTPToken: Bool { !isEmpty && utf8.allSatisfy(\.isTokenByte) }

  /// Whether this can be the value of a header field (RFC 9110, section 5.5).
  package var isHTTPFieldValue: Bool {
    utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }

  /// The text in these bytes; `nil` where they are not UTF-8. (The standard library's own check
  /// requires newer systems than the SDK.)
  package init?(checkingUTF8 bytes: some Collection<UInt8>) {
    let text = bytes.withBytes { bytes -> String? in
      let text = String(decoding: bytes, as: UTF8.self)
      // Invalid UTF-8 has been replaced with U+FFFD.
      return text.utf8.hasSameBytes(as: bytes) ? text : nil
    }
    guard let text else { return nil }
    self = text
  }

  /// `lowercased()`, without copying a text without capitals, as nearly all tags and ids are.
  package var foldingCapitals: String {
    let isFolded = utf8.withBytes { bytes in
      // Reads all bytes, so that the compiler can look at several together.
      bytes.reduce(0) { $0 | ($1 & 0x80) | ($1 &- 0x41 < 26 ? 1 : 0) } == 0
    }
    return isFolded ? self : lowercased()
  }
}

extension StringProtocol where UTF8View: BidirectionalCollection {
  /// The text without leading and trailing blanks, tabs and line ends.
  @inlinable package var trimmingBlanks: String {
    let trimmed = utf8.trimmingBlanks
    return trimmed.count == utf8.count ? String(self) : String(decoding: trimmed, as: UTF8.self)
  }
}

extension Dictionary where Key: Comparable {
  /// Calls `body` with the entries in the order of their keys. One, which is usual, is not sorted.
  @inlinable package func forEachInKeyOrder(_ body: (Key, Value) throws -> Void) rethrows {
    if count < 2 {
      for (key, value) in self { try body(key, value) }
    } else {
      for (key, value) in sorted(by: { $0.key < $1.key }) { try body(key, value) }
    }
  }
}
