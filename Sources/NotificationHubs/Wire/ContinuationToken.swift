import Wire

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
