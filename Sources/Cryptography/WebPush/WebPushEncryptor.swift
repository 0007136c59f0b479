import COpenSSL
import Wire

/// Encrypts Web Push messages: RFC 8291 on the content encoding `aes128gcm` of RFC 8188, one
/// record.
///
/// Reuses its contexts from message to message. Not `Sendable`: one for each task that encrypts.
/// Owns its OpenSSL contexts and its scratch memory.
package final class WebPushEncryptor {
  /// Maximum length of a plaintext, in bytes, so that the body has the 4096 bytes that every push
  /// service accepts.
  package static let maxPlaintext = recordSize - overhead
  /// Number of bytes that a body has in addition to its plaintext.
  package static let overhead = headerCount + 1 + tagCount

  static let recordSize = 4096
  package static let saltCount = 16
  static let headerCount = saltCount + 4 + 1 + P256Agreement.pointCount
  static let tagCount = 16

  private let agreement: P256Agreement
  private let derivation: WebPushDerivation
  private let cipher: OpaquePointer

  package init() throws(CryptographyError) {
    agreement = try P256Agreement()
    derivation = try WebPushDerivation()
    guard let cipher = EVP_CIPHER_CTX_new() else { throw .engine("prepare a cipher") }
    self.cipher = cipher
    guard EVP_EncryptInit_ex(cipher, EVP_aes_128_gcm(), nil, nil, nil) == 1 else {
      throw .engine("prepare a cipher")
    }
  }

  deinit { EVP_CIPHER_CTX_free(cipher) }

  /// Encrypts a message and appends the body to `output`, with a new key each time.
  /// - Parameters:
  ///   - plaintext: At most ``maxPlaintext`` bytes.
  ///   - padding: Number of zero bytes after the plaintext, which hide its length; counts towards
  ///     its length.
  ///   - salt: ``saltCount`` random bytes; `nil` generates them.
  /// - Throws: ``CryptographyError``: malformed when the recipient's key is no point of the curve,
  ///   unsupported when the plaintext is too long. `output` is as it was then.
  package func encrypt(
    _ plaintext: [UInt8], to recipient: WebPushRecipient, padding: Int = 0, salt: [UInt8]? = nil,
    appendingTo output: inout [UInt8]
  ) throws(CryptographyError) {
    try agreement.makeKey()
    try seal(plaintext, to: recipient, padding: padding, salt: salt, appendingTo: &output)
  }

  /// For tests: with a known key and salt.
  func encrypt(
    _ plaintext: [UInt8], to recipient: WebPushRecipient, padding: Int, scalar: [UInt8],
    salt: [UInt8]
  ) throws(CryptographyError) -> [UInt8] {
    try agreement.use(scalar: scalar)
    var output: [UInt8] = []
    try seal(plaintext, to: recipient, padding: padding, salt: salt, appendingTo: &output)
    return output
  }

  private func seal(
    _ plaintext: [UInt8], to recipient: WebPushRecipient, padding: Int, salt: [UInt8]?,
    appendingTo output: inout [UInt8]
  ) throws(CryptographyError) {
    guard (0...Self.maxPlaintext).contains(padding),
      plaintext.count <= Self.maxPlaintext - padding
    else {
      throw CryptographyError(
        .unsupported,
        "A Web Push message has at most \(Self.maxPlaintext) bytes, this has \(plaintext.count).")
    }
    let start = output.count
    output.append(contentsOf: repeatElement(0, count: plaintext.count + padding + Self.overhead))
    do {
      try output.withUnsafeMutableBufferPointer { buffer throws(CryptographyError) in
        guard let base = buffer.baseAddress else { return }
        let body = base + start
        try writeHeader(to: body, salt: salt)
        try derive(for: recipient, header: body)
        try encrypt(plaintext, padding: padding, to: body + Self.headerCount)
      }
    } catch {
      output.removeSubrange(start...)
      throw error
    }
  }

  /// Salt, record size, length of the key id, key id: the sender's public key (RFC 8188, 2.1).
  private func writeHeader(
    to body: UnsafeMutablePointer<UInt8>, salt: [UInt8]?
  ) throws(CryptographyError) {
    if let salt {
      for (index, byte) in salt.prefix(Self.saltCount).enumerated() { body[index] = byte }
    } else if RAND_bytes(body, Int32(Self.saltCount)) != 1 {
      throw .engine("make random bytes")
    }
    for index in 0..<4 {
      body[Self.saltCount + index] =
        UInt8(truncatingIfNeeded: Self.recordSize >> (24 - 8 * index))
    }
    body[Self.saltCount + 4] = UInt8(P256Agreement.pointCount)
    try agreement.writePoint(to: body + Self.saltCount + 5)
  }

  private func derive(
    for recipient: WebPushRecipient, header: UnsafeMutablePointer<UInt8>
  ) throws(CryptographyError) {
    let isPoint = try recipient.publicKey.withUnsafeBufferPointer {
      key throws(CryptographyError) in
      guard let point = key.baseAddress else { return false }
      guard try agreement.writeSecret(with: point, to: derivation.secret) else { return false }
      derivation.setInfo(recipient: point, sender: header + Self.saltCount + 5)
      return true
    }
    guard isPoint else {
      throw CryptographyError(.malformed, "The subscription's key is no point of the curve P-256.")
    }
    try derivation.run(authentication: recipient.secret, salt: header)
  }

  private func encrypt(
    _ plaintext: [UInt8], padding: Int, to record: UnsafeMutablePointer<UInt8>
  ) throws(CryptographyError) {
    var count: Int32 = 0
    // The delimiter of the last record, then the padding.
    let tail = [0x02] + [UInt8](repeating: 0, count: padding)
    guard
      EVP_EncryptInit_ex(cipher, nil, nil, derivation.contentKey, derivation.nonce) == 1,
      EVP_EncryptUpdate(cipher, record, &count, plaintext, Int32(plaintext.count)) == 1,
      EVP_EncryptUpdate(cipher, record + plaintext.count, &count, tail, Int32(tail.count)) == 1,
      EVP_EncryptFinal_ex(cipher, nil, &count) == 1,
      EVP_CIPHER_CTX_ctrl(
        cipher, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagCount),
        record + plaintext.count + tail.count) == 1
    else { throw .engine("encrypt") }
  }
}

/// The keys of a Web Push subscription, as the browser made them (RFC 8291, section 2).
package struct WebPushRecipient: Hashable, Sendable {
  /// The browser's public key: an uncompressed point of P-256, 65 bytes. Encryption fails if it is
  /// not on the curve.
  package let publicKey: [UInt8]
  /// The authentication secret, 16 bytes.
  package let secret: [UInt8]

  /// - Returns: `nil` for keys of another length, or a point that is not uncompressed.
  package init?(publicKey: [UInt8], secret: [UInt8]) {
    guard publicKey.count == P256Agreement.pointCount, publicKey[0] == 0x04, secret.count == 16
    else { return nil }
    (self.publicKey, self.secret) = (publicKey, secret)
  }

  /// Parses a subscription's `p256dh` and `auth`: base 64 in either alphabet, padded or not,
  /// because browsers and libraries differ.
  package init?(p256dh: some Collection<UInt8>, auth: some Collection<UInt8>) {
    guard let key = Base64.decodeAnyAlphabet(p256dh), let secret = Base64.decodeAnyAlphabet(auth)
    else { return nil }
    self.init(publicKey: key, secret: secret)
  }

  /// `p256dh` as browsers write it.
  package var p256dh: String { Base64URL.encode(publicKey) }
  /// `auth` as browsers write it.
  package var auth: String { Base64URL.encode(secret) }
}
