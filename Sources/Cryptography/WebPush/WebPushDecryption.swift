/// The receiving end of Web Push encryption (RFC 8291), as a browser does it.
package enum WebPushDecryption {
  /// The sender's public key in a body's header; `nil` when the header is not one that RFC 8291
  /// allows: shorter than 86 bytes, a record size below 18, another key id than an uncompressed
  /// point. Whether the point lies on the curve is not checked.
  package static func senderKey(of body: [UInt8]) -> [UInt8]? {
    let keyStart = WebPushEncryptor.saltCount + 5
    guard body.count >= WebPushEncryptor.headerCount, recordSize(of: body) >= 18,
      body[keyStart - 1] == UInt8(P256Agreement.pointCount), body[keyStart] == 0x04
    else { return nil }
    return Array(body[keyStart..<WebPushEncryptor.headerCount])
  }

  /// - Parameters:
  ///   - body: The body as received from the push service.
  ///   - key: The subscription's private key.
  ///   - secret: The subscription's `auth`, 16 bytes.
  /// - Returns: The plaintext without padding.
  /// - Throws: ``CryptographyError``: malformed for a bad header, sealBroken for all else that
  ///   makes a browser throw the message away.
  package static func open(
    _ body: [UInt8], key: P256PrivateKey, secret: [UInt8]
  ) throws(CryptographyError) -> [UInt8] {
    guard let sender = senderKey(of: body), secret.count == 16 else {
      throw CryptographyError(.malformed, "The message has no header of Web Push (RFC 8291).")
    }
    let record = Array(body[WebPushEncryptor.headerCount...])
    guard record.count > WebPushEncryptor.tagCount, record.count <= recordSize(of: body) else {
      throw CryptographyError(.malformed, "The message is not one record of Web Push.")
    }
    let agreement = try P256Agreement()
    let derivation = try WebPushDerivation()
    try agreement.use(scalar: try key.scalar())
    guard try agreement.writeSecret(with: sender, to: derivation.secret) else {
      throw CryptographyError(.malformed, "The sender's key is no point of the curve P-256.")
    }
    var point = [UInt8](repeating: 0, count: P256Agreement.pointCount)
    try agreement.writePoint(to: &point)
    derivation.setInfo(recipient: point, sender: sender)
    try derivation.run(authentication: secret, salt: body)
    var plaintext: [UInt8]
    do throws(CryptographyError) {
      let cipher = AuthenticatedCipher.aes128GCM
      plaintext = try cipher.open(
        record,
        key: Array(UnsafeBufferPointer(start: derivation.contentKey, count: cipher.keyCount)),
        nonce: Array(
          UnsafeBufferPointer(start: derivation.nonce, count: AuthenticatedCipher.nonceCount)))
    } catch {
      guard error.kind == .sealBroken else { throw error }
      throw CryptographyError(
        .sealBroken, "The message does not open: another key or secret, or changed bytes.")
    }
    while plaintext.last == 0 { plaintext.removeLast() }
    guard plaintext.popLast() == 0x02 else {
      throw CryptographyError(.sealBroken, "The message's last record does not end with 2.")
    }
    return plaintext
  }

  private static func recordSize(of body: [UInt8]) -> Int {
    body[WebPushEncryptor.saltCount..<(WebPushEncryptor.saltCount + 4)].reduce(0) {
      $0 << 8 | Int($1)
    }
  }
}
