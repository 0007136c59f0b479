import Foundation
import Testing
import Wire

@testable import Cryptography

@Suite("Web Push encryption (RFC 8291)")
struct WebPushEncryptionTests {
  private static func bytes(_ text: String) throws -> [UInt8] {
    try #require(Base64URL.decode(text))
  }

  @Test(
    "a message is encrypted as the published vectors say", arguments: PushVectors.all.rfc8291.cases)
  func vector(_ vector: PushVectors.Encryption) throws {
    let recipient = try #require(
      WebPushRecipient(p256dh: vector.uaPublicB64U.utf8, auth: vector.authSecretB64U.utf8))
    let body = try WebPushEncryptor().encrypt(
      vector.plaintext, to: recipient, padding: vector.paddingBytes ?? 0,
      scalar: Self.bytes(vector.asPrivateB64U), salt: Self.bytes(vector.saltB64U))
    #expect(body.count == vector.bodyLength)
    if let expected = vector.bodyB64U { #expect(Base64URL.encode(body) == expected) }
    if let digest = vector.bodySha256Hex { #expect(Hex.encode(Digest.sha256(body)) == digest) }
    let key = try P256PrivateKey(scalar: Self.bytes(vector.uaPrivateB64U))
    let opened = try WebPushDecryption.open(
      body, key: key, secret: Self.bytes(vector.authSecretB64U))
    #expect(opened == vector.plaintext)
  }

  @Test(
    "a message that a browser throws away does not open",
    arguments: PushVectors.all.rfc8291.negative)
  func negative(_ vector: PushVectors.Negative) throws {
    let key = try P256PrivateKey(scalar: Self.bytes(vector.uaPrivateB64U))
    let body = try Self.bytes(vector.bodyB64U)
    let secret = try Self.bytes(vector.authSecretB64U)
    #expect(throws: CryptographyError.self) {
      try WebPushDecryption.open(body, key: key, secret: secret)
    }
  }

  @Test("each message has a key and a salt of its own, and all open")
  func fresh() throws {
    let key = try P256PrivateKey()
    let secret = try SecureRandom.bytes(16)
    let recipient = try #require(
      WebPushRecipient(publicKey: try key.publicKey().point, secret: secret))
    let encryptor = try WebPushEncryptor()
    var output: [UInt8] = [1, 2, 3]
    var starts: [Int] = []
    for length in 0..<50 {
      starts.append(output.count)
      try encryptor.encrypt(
        [UInt8](repeating: 7, count: length), to: recipient, appendingTo: &output)
    }
    starts.append(output.count)
    var heads: Set<[UInt8]> = []
    for (length, (start, end)) in zip(starts, starts.dropFirst()).enumerated() {
      let body = Array(output[start..<end])
      heads.insert(Array(body[..<16]))
      heads.insert(Array(body[21..<86]))
      let opened = try WebPushDecryption.open(body, key: key, secret: secret)
      #expect(opened == [UInt8](repeating: 7, count: length))
    }
    #expect(heads.count == 100)
    #expect(output[..<3] == [1, 2, 3])
  }

  @Test("3993 bytes are the most, padding included; too much leaves the output as it was")
  func limit() throws {
    let key = try P256PrivateKey()
    let recipient = try #require(
      WebPushRecipient(
        publicKey: try key.publicKey().point, secret: [UInt8](repeating: 1, count: 16)))
    let encryptor = try WebPushEncryptor()
    var output: [UInt8] = []
    let most = [UInt8](repeating: 1, count: 3993)
    try encryptor.encrypt(most, to: recipient, appendingTo: &output)
    #expect(output.count == 4096)
    for (count, padding) in [(3994, 0), (3993, 1), (1, 3993), (0, 5000), (0, -1)] {
      #expect(throws: CryptographyError.self) {
        try encryptor.encrypt(
          [UInt8](repeating: 1, count: count), to: recipient, padding: padding,
          appendingTo: &output)
      }
    }
    #expect(output.count == 4096)
  }

  @Test("keys in either alphabet, padded or not, are the same recipient")
  func spellings() throws {
    let vector = try #require(PushVectors.all.rfc8291.cases.first)
    let plain = try #require(
      WebPushRecipient(p256dh: vector.uaPublicB64U.utf8, auth: vector.authSecretB64U.utf8))
    let standard = (Base64.encode(plain.publicKey), Base64.encode(plain.secret))
    #expect(WebPushRecipient(p256dh: standard.0.utf8, auth: standard.1.utf8) == plain)
    #expect(plain.p256dh == vector.uaPublicB64U && plain.auth == vector.authSecretB64U)
    let bad = ["", "A", "====", vector.uaPublicB64U + "AAAA", " " + vector.uaPublicB64U, "é"]
    for text in bad {
      #expect(WebPushRecipient(p256dh: text.utf8, auth: vector.authSecretB64U.utf8) == nil)
      #expect(WebPushRecipient(p256dh: vector.uaPublicB64U.utf8, auth: text.utf8) == nil)
    }
  }

  @Test("a recipient whose key is off the curve is refused")
  func offCurve() throws {
    let vector = try #require(PushVectors.all.rfc8291.cases.first)
    var point = try Self.bytes(vector.uaPublicB64U)
    point[64] ^= 1
    let recipient = try #require(
      WebPushRecipient(publicKey: point, secret: [UInt8](repeating: 0, count: 16)))
    var output: [UInt8] = []
    do throws(CryptographyError) {
      try WebPushEncryptor().encrypt([1], to: recipient, appendingTo: &output)
      Issue.record("encrypted for a point off the curve")
    } catch {
      #expect(error.kind == .malformed)
    }
    #expect(output.isEmpty)
  }

  @Test("a private number goes in and out; what is none is refused")
  func scalars() throws {
    let key = try P256PrivateKey()
    let scalar = try key.scalar()
    #expect(try P256PrivateKey(scalar: scalar).publicKey() == key.publicKey())
    let order = try #require(
      Hex.decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"))
    let bad = [[], [1], [UInt8](repeating: 0, count: 32), order, scalar + [0]]
    for bytes in bad {
      #expect(throws: CryptographyError.self) { try P256PrivateKey(scalar: bytes) }
    }
  }
}
