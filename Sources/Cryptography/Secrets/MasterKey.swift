import Wire

/// The key of 32 bytes under which a store's secrets are sealed.
///
/// Its descriptions never show it.
package struct MasterKey: Sendable, CustomStringConvertible, CustomReflectable {
  package static let byteCount = 32

  let bytes: [UInt8]
  /// Eight hexadecimal digits that distinguish it from others and reveal nothing about it: they are
  /// stored beside the values sealed under it.
  package let id: String

  /// Generates a new random key.
  package init() throws(CryptographyError) {
    try self.init(bytes: try SecureRandom.bytes(Self.byteCount))
  }

  private init(bytes: [UInt8]) throws(CryptographyError) {
    self.bytes = bytes
    let code = try MessageAuthentication.code(of: Array("belfry key id".utf8), key: bytes)
    id = Hex.encode(Array(code.prefix(Self.idByteCount)))
  }

  static let idByteCount = 4

  /// Parses one key in its usual text forms: 64 hexadecimal digits, or base 64 (44 characters;
  /// padding may be left out); surrounding white space is ignored.
  /// - Parameter origin: The origin of the text, for the error: `the variable BELFRY_MASTER_KEY`.
  package init(text: String, origin: String) throws(CryptographyError) {
    let word = String(text.filter { !$0.isWhitespace })
    guard
      let bytes = word.utf8.count == 2 * Self.byteCount ? Hex.decode(word) : Base64.decode(word),
      bytes.count == Self.byteCount
    else {
      throw CryptographyError(
        .malformed,
        """
        The master key in \(origin) is not one: it must be 32 bytes as base 64 or as 64 hexadecimal \
        digits. Put back the one of this hub; for a new hub make one with: openssl rand -base64 32
        """)
    }
    try self.init(bytes: bytes)
  }

  package var description: String { "MasterKey(hidden)" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
