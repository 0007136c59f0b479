import Wire

/// What can stand for an id in a path.
///
/// URL layers (URLSession, libcurl, proxies, `PathBase` of other servers) take `.` and `..` out of
/// a path before it is sent: `DELETE /hub/installations/..` becomes `DELETE /hub/`.
/// Percent-encoding does not help, since dots may stand encoded and encoded dots count as dots
/// (WHATWG URL, 4.4).
extension String {
  /// Whether this text, percent-encoded, is one segment of a path that no URL layer changes.
  ///
  /// Refused are the empty text, control characters, backslashes and ``hasDotSegment``.
  package var isPathSegment: Bool {
    !isEmpty && !hasDotSegment
      && utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\\") }
  }

  /// The text for a message: control characters percent-encoded, at most 100 characters.
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

  /// Whether this is `.` or `..`, or would have such a part where it is decoded once or twice more,
  /// where `\` is read as `/`, or where what follows a `;` is cut off.
  package var hasDotSegment: Bool {
    guard utf8.contains(where: { $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "%") }) else {
      return false
    }
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

/// Where the next page of a list begins, as a text that needs no encoding, because clients encode
/// it not at all, once or twice (docs/protocol/rest.md, section 3.9).
package enum ContinuationToken {
  /// The longest token that is read, in bytes.
  package static let maximumLength = 1024

  /// The token for a position that means something to the server only: unreserved characters.
  package static func encode(_ position: some Collection<UInt8>) -> String {
    Base64URL.encode(Array(position))
  }

  /// The position in a token, however often the token has been percent-encoded on its way.
  /// - Returns: `nil` when it is none of ours; the answer is 400.
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
