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
    var rest = text[...]
    while let begin = rest.firstRange(of: "-----BEGIN ") {
      rest = rest[begin.upperBound...]
      guard let labelEnd = rest.firstRange(of: "-----") else {
        throw CryptographyError(.malformed, "The PEM text has a BEGIN line that does not end.")
      }
      let label = String(rest[..<labelEnd.lowerBound])
      rest = rest[labelEnd.upperBound...]
      guard let end = rest.firstRange(of: "-----END \(label)-----") else {
        throw CryptographyError(
          .malformed, "The PEM block '\(label)' has no END line; copy the whole file.")
      }
      let body = rest[..<end.lowerBound]
      rest = rest[end.upperBound...]
      guard !body.contains("Proc-Type:") else {
        throw CryptographyError(
          .unsupported, "The PEM block '\(label)' is encrypted; decrypt it first (openssl pkey).")
      }
      // Some forms replace line ends with the two characters "\n".
      guard let der = Base64.decode(body.replacing("\\n", with: "")) else {
        throw CryptographyError(.malformed, "The body of the PEM block '\(label)' is not base 64.")
      }
      blocks.append(Block(label: label, der: der))
    }
    return blocks
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
