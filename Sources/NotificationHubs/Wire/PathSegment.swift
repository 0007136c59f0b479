import Wire

/// Validation of ids in paths.
///
/// URL layers (URLSession, libcurl, proxies, `PathBase` of other servers) remove `.` and `..` from
/// a path before it is sent: `DELETE /hub/installations/..` becomes `DELETE /hub/`.
/// Percent-encoding does not help, since dots may be percent-encoded and encoded dots count as dots
/// (WHATWG URL, 4.4).
extension String {
  /// Whether this text, percent-encoded, is a single path segment that no URL layer changes.
  ///
  /// The empty text, control characters, backslashes and texts that ``hasDotSegment`` are rejected.
  package var isPathSegment: Bool {
    !isEmpty && !hasDotSegment
      && utf8.withBytes { bytes in
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\\") }
      }
  }

  /// The text in a form safe for messages: control characters percent-encoded, at most 100
  /// characters.
  package var printable: String {
    var text = ""
    for scalar in unicodeScalars.prefix(100) {
      if scalar.properties.generalCategory == .control {
        text += String(scalar).percentEncoded
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// Whether this is `.` or `..`, or would contain such a segment when it is decoded once or twice
  /// more, when `\` is read as `/`, or when the part after a `;` is cut off.
  package var hasDotSegment: Bool {
    let isPlain = utf8.withBytes { bytes in
      bytes.allSatisfy { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "%") }
    }
    if isPlain { return false }
    var text = self
    for _ in 0...2 {
      let parts = text.utf8.split(omittingEmptySubsequences: true) {
        $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\")
      }
      for part in parts {
        let name = part.prefix { $0 != UInt8(ascii: ";") }
        if name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8) { return true }
      }
      guard text.utf8.contains(UInt8(ascii: "%")) else { return false }
      text = text.percentDecoded
    }
    return false
  }
}

/// The position of the next page of a list, as a text that needs no encoding, because clients
/// encode it not at all, once or twice (docs/protocol/rest.md, section 3.9).
package enum ContinuationToken {
  /// The maximum length of a token, in bytes.
  package static let maximumLength = 1024

  /// Encodes a position, which only the server interprets, in unreserved characters.
  package static func encode(_ position: some Collection<UInt8>) -> String {
    Base64URL.encode(Array(position))
  }

  /// Decodes the position in a token, regardless of how often the token was percent-encoded.
  /// - Returns: `nil` if the token is invalid; the reply is 400.
  package static func decode(_ token: String) -> [UInt8]? {
    guard token.utf8.count <= maximumLength else { return nil }
    var text = token
    while true {
      let decoded = text.percentDecoded
      if decoded == text { break }
      text = decoded
    }
    while text.last == "=" { text.removeLast() }
    return text.isEmpty ? nil : Base64.decodeAnyAlphabet(text.utf8)
  }
}
