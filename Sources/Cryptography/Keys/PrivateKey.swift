import Wire

/// A private key of any kind, passed from storage to a TLS session; APNs certificates have RSA
/// keys.
package struct PrivateKey: Sendable {
  let handle: KeyHandle

  init(handle: KeyHandle) { self.handle = handle }

  /// Parses PEM text with a PKCS#8, SEC 1 or PKCS#1 block, not encrypted.
  package init(pem: String) throws(CryptographyError) {
    self.init(handle: try Self.read(pem))
  }

  /// PKCS#8 as PEM text (`PRIVATE KEY`). Secret: never log it.
  package func pem() throws(CryptographyError) -> String {
    PEM.encode(label: "PRIVATE KEY", der: try handle.privateDER())
  }

  /// Parses PEM text, or its base 64 body alone.
  static func read(_ text: String) throws(CryptographyError) -> KeyHandle {
    let der: [UInt8]
    if PEM.isArmoured(text) {
      let blocks = try PEM.blocks(in: text)
      guard let block = blocks.first(where: { $0.label.hasSuffix("PRIVATE KEY") }) else {
        let labels = blocks.map(\.label).joined(separator: ", ")
        throw CryptographyError(
          .malformed, "The PEM text holds no private key, only: \(labels).")
      }
      guard block.label != "ENCRYPTED PRIVATE KEY" else {
        throw CryptographyError(
          .unsupported, "The private key is encrypted; decrypt it first (openssl pkcs8).")
      }
      der = block.der
    } else {
      guard let body = Base64.decode(text.replacing("\\n", with: "")), !body.isEmpty else {
        throw CryptographyError(
          .malformed, "The private key is neither PEM text nor the base 64 body of a .p8 file.")
      }
      der = body
    }
    guard let handle = KeysInUse.shared.handle(privateDER: der) else {
      throw CryptographyError(
        .malformed, "The text decodes, but what it holds is not a private key.")
    }
    return handle
  }
}
