import COpenSSL

/// Derives the key and nonce of a Web Push message from the agreed secret (RFC 8291, section 3.4),
/// in scratch memory of its own. Not `Sendable`: belongs to one encryptor. Owns the memory.
final class WebPushDerivation {
  private static let infoStart = Array("WebPush: info\0".utf8)
  private static let keyInfo = Array("Content-Encoding: aes128gcm\0\u{01}".utf8)
  private static let nonceInfo = Array("Content-Encoding: nonce\0\u{01}".utf8)
  /// The prefix, both public keys, and the number of HKDF's only block.
  private static let infoCount = infoStart.count + 2 * P256Agreement.pointCount + 1
  private static let digestCount = 32

  private let context: OpaquePointer
  private let memory: UnsafeMutablePointer<UInt8>
  private static let memoryCount = infoCount + 4 * digestCount

  /// The shared secret, set before ``run(authentication:salt:)``: 32 bytes.
  let secret: UnsafeMutablePointer<UInt8>
  private let intermediate: UnsafeMutablePointer<UInt8>
  /// The content encryption key, 16 bytes, after ``run(authentication:salt:)``.
  let contentKey: UnsafeMutablePointer<UInt8>
  /// 12 bytes, after ``run(authentication:salt:)``.
  let nonce: UnsafeMutablePointer<UInt8>

  init() throws(CryptographyError) {
    guard let context = belfry_hmac_sha256() else { throw .engine("prepare an HMAC") }
    self.context = context
    memory = .allocate(capacity: Self.memoryCount)
    memory.initialize(repeating: 0, count: Self.memoryCount)
    for (index, byte) in Self.infoStart.enumerated() { memory[index] = byte }
    memory[Self.infoCount - 1] = 1
    secret = memory + Self.infoCount
    intermediate = secret + Self.digestCount
    contentKey = intermediate + Self.digestCount
    nonce = contentKey + Self.digestCount
  }

  deinit {
    OPENSSL_cleanse(memory, Self.memoryCount)
    memory.deallocate()
    EVP_MAC_CTX_free(context)
  }

  /// - Parameters: Public keys, 65 bytes each.
  func setInfo(recipient: UnsafePointer<UInt8>, sender: UnsafePointer<UInt8>) {
    let place = memory + Self.infoStart.count
    place.update(from: recipient, count: P256Agreement.pointCount)
    (place + P256Agreement.pointCount).update(from: sender, count: P256Agreement.pointCount)
  }

  /// - Parameters:
  ///   - authentication: The subscription's secret.
  ///   - salt: 16 bytes.
  func run(
    authentication: [UInt8], salt: UnsafePointer<UInt8>
  ) throws(CryptographyError) {
    let count = Self.digestCount
    let isDone =
      code(of: secret, count, key: authentication, authentication.count, to: intermediate)
      && code(of: memory, Self.infoCount, key: intermediate, count, to: secret)
      && code(of: secret, count, key: salt, WebPushEncryptor.saltCount, to: intermediate)
      && code(of: Self.keyInfo, Self.keyInfo.count, key: intermediate, count, to: contentKey)
      && code(of: Self.nonceInfo, Self.nonceInfo.count, key: intermediate, count, to: nonce)
    guard isDone else { throw .engine("derive a key") }
  }

  private func code(
    of message: UnsafePointer<UInt8>, _ messageCount: Int, key: UnsafePointer<UInt8>,
    _ keyCount: Int, to output: UnsafeMutablePointer<UInt8>
  ) -> Bool {
    var count = 0
    return EVP_MAC_init(context, key, keyCount, nil) == 1
      && EVP_MAC_update(context, message, messageCount) == 1
      && EVP_MAC_final(context, output, &count, Self.digestCount) == 1
  }
}
