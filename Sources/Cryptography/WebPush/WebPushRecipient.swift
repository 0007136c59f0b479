import Wire

/// The keys of a Web Push subscription, as the browser made them (RFC 8291, section 2).
package struct WebPushRecipient: Hashable, Sendable {
  /// The browser's public key: an uncompressed point of P-256, 65 bytes. Whether it lies on the curve
  /// shows when a message is encrypted.
  package let publicKey: [UInt8]
  /// The authentication secret, 16 bytes.
  package let secret: [UInt8]

  /// - Returns: `nil` for keys of another length, or a point that is not uncompressed.
  package init?(publicKey: [UInt8], secret: [UInt8]) {
    guard publicKey.count == P256Agreement.pointCount, publicKey[0] == 0x04, secret.count == 16
    else { return nil }
    (self.publicKey, self.secret) = (publicKey, secret)
  }

  /// Reads a subscription's `p256dh` and `auth`: base 64 in either alphabet, padded or not, since
  /// browsers and libraries differ.
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
