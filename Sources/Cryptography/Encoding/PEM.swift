import Wire

/// PEM text (RFC 7468): base 64 between `-----BEGIN label-----` and `-----END label-----`.
///
/// Parsed here and not by OpenSSL, whose parser asks at the terminal for a password when it meets
/// an encrypted key, and which refuses text whose line ends were lost in a form field.
package enum PEM {
  /// One armoured block.
  package struct Block: Equatable, Sendable {
    /// For example `CERTIFICATE` or `PRIVATE KEY`.
    package let label: String
    package let der: [UInt8]
  }

  /// All blocks in order; text between them is skipped.
  /// - Throws: ``CryptographyError`` (malformed) when a block does not end or its body is not base
  ///   64.
  package static func blocks(in text: String) throws(CryptographyError) -> [Block] {
    var blocks: [Block] = []
    var rest = Array(text.utf8)[...]
    while let begin = range(of: "-----BEGIN ", in: rest) {
      rest = rest[begin.upperBound...]
      guard let labelEnd = range(of: "-----", in: rest) else {
        throw CryptographyError(.malformed, "The PEM text has a BEGIN line that does not end.")
      }
      let label = String(decoding: rest[..<labelEnd.lowerBound], as: UTF8.self)
      rest = rest[labelEnd.upperBound...]
      guard let end = range(of: "-----END \(label)-----", in: rest) else {
        throw CryptographyError(
          .malformed, "The PEM block '\(label)' has no END line; copy the whole file.")
      }
      let body = rest[..<end.lowerBound]
      rest = rest[end.upperBound...]
      guard range(of: "Proc-Type:", in: body) == nil else {
        throw CryptographyError(
          .unsupported, "The PEM block '\(label)' is encrypted; decrypt it first (openssl pkey).")
      }
      guard let der = Base64.decode(String(decoding: joined(body), as: UTF8.self)) else {
        throw CryptographyError(.malformed, "The body of the PEM block '\(label)' is not base 64.")
      }
      blocks.append(Block(label: label, der: der))
    }
    return blocks
  }

  /// Whether a text has a block, or begins to.
  static func isArmoured(_ text: String) -> Bool {
    range(of: "-----BEGIN", in: Array(text.utf8)[...]) != nil
  }

  /// Searches bytes: in a text character by character it takes longer than reading the key.
  private static func range(of marker: String, in text: ArraySlice<UInt8>) -> Range<Int>? {
    let marker = Array(marker.utf8)
    guard text.count >= marker.count else { return nil }
    for start in text.startIndex...text.endIndex - marker.count where text[start] == marker[0] {
      let range = start..<start + marker.count
      if text[range].elementsEqual(marker) { return range }
    }
    return nil
  }

  /// Some forms replace line ends with the two characters "\n".
  private static func joined(_ body: ArraySlice<UInt8>) -> [UInt8] {
    guard body.contains(UInt8(ascii: "\\")) else { return Array(body) }
    var joined: [UInt8] = []
    var rest = body
    while let end = range(of: "\\n", in: rest) {
      joined += rest[..<end.lowerBound]
      rest = rest[end.upperBound...]
    }
    return joined + rest
  }

  /// The SubjectPublicKeyInfo of the first block `PUBLIC KEY`.
  static func publicKey(in text: String) throws(CryptographyError) -> [UInt8] {
    guard let block = try blocks(in: text).first(where: { $0.label == "PUBLIC KEY" }) else {
      throw CryptographyError(.malformed, "The text holds no PEM block 'PUBLIC KEY'.")
    }
    return block.der
  }

  /// The block as text: lines of 64 characters, a line end after each.
  package static func encode(label: String, der: [UInt8]) -> String {
    var text = "-----BEGIN \(label)-----\n"
    var rest = Base64.encode(der)[...]
    while !rest.isEmpty {
      text += rest.prefix(64) + "\n"
      rest = rest.dropFirst(64)
    }
    return text + "-----END \(label)-----\n"
  }
}
