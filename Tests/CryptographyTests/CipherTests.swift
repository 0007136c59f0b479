import Testing
import Wire

@testable import Cryptography

@Suite("Authenticated ciphers, key derivation and key agreement")
struct CipherTests {
  struct Sealed: CustomTestStringConvertible {
    let cipher: AuthenticatedCipher
    let key, nonce, associated, plaintext, sealed: String
    var testDescription: String { "\(cipher)" }
  }

  /// RFC 9180, appendices A.1.1 and A.2.1, sequence number 0: there the ciphers are used directly.
  static let published = [
    Sealed(
      cipher: .aes128GCM, key: "4531685d41d65f03dc48f6b8302c05b0",
      nonce: "56d890e5accaaf011cff4b7d", associated: "436f756e742d30",
      plaintext: "4265617574792069732074727574682c20747275746820626561757479",
      sealed: "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a9"
        + "6d8770ac83d07bea87e13c512a"),
    Sealed(
      cipher: .chaCha20Poly1305,
      key: "ad2744de8e17f4ebba575b3f5f5a8fa1f69c2a07f6e7500bc60ca6e3e3ec1c91",
      nonce: "5c4d98150661b848853b547f", associated: "436f756e742d30",
      plaintext: "4265617574792069732074727574682c20747275746820626561757479",
      sealed: "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db"
        + "21993c62ce81883d2dd1b51a28"),
  ]

  @Test(
    "sealing gives the published bytes, and opening gives the plaintext back", arguments: published)
  func publishedBytes(_ vector: Sealed) throws {
    let key = try #require(Hex.decode(vector.key))
    let nonce = try #require(Hex.decode(vector.nonce))
    let associated = try #require(Hex.decode(vector.associated))
    let plaintext = try #require(Hex.decode(vector.plaintext))
    let sealed = try vector.cipher.seal(plaintext, key: key, nonce: nonce, associated: associated)
    #expect(Hex.encode(sealed) == vector.sealed)
    #expect(
      try vector.cipher.open(sealed, key: key, nonce: nonce, associated: associated) == plaintext)
  }

  @Test("nothing that was changed opens", arguments: AuthenticatedCipher.allCases)
  func changed(_ cipher: AuthenticatedCipher) throws {
    let key = [UInt8](repeating: 7, count: cipher.keyCount)
    let nonce = [UInt8](repeating: 9, count: 12)
    let sealed = try cipher.seal([1, 2, 3], key: key, nonce: nonce, associated: [4])
    #expect(sealed.count == 3 + AuthenticatedCipher.tagCount)
    for index in sealed.indices {
      var other = sealed
      other[index] ^= 1
      #expect(throws: CryptographyError.self) {
        try cipher.open(other, key: key, nonce: nonce, associated: [4])
      }
    }
    #expect(throws: CryptographyError.self) {
      try cipher.open(sealed, key: key, nonce: nonce, associated: [5])
    }
    #expect(throws: CryptographyError.self) {
      try cipher.open(Array(sealed.prefix(15)), key: key, nonce: nonce, associated: [4])
    }
    #expect(try cipher.open(sealed, key: key, nonce: nonce, associated: [4]) == [1, 2, 3])
  }

  @Test("an empty plaintext is sealed as a tag", arguments: AuthenticatedCipher.allCases)
  func empty(_ cipher: AuthenticatedCipher) throws {
    let key = [UInt8](repeating: 7, count: cipher.keyCount)
    let nonce = [UInt8](repeating: 9, count: 12)
    let sealed = try cipher.seal([], key: key, nonce: nonce)
    #expect(sealed.count == AuthenticatedCipher.tagCount)
    #expect(try cipher.open(sealed, key: key, nonce: nonce).isEmpty)
  }

  @Test("a key or nonce of the wrong length is refused before OpenSSL reads past it")
  func lengths() {
    #expect(throws: CryptographyError.self) {
      try AuthenticatedCipher.aes256GCM.seal(
        [], key: [UInt8](repeating: 0, count: 16), nonce: [UInt8](repeating: 0, count: 12))
    }
    #expect(throws: CryptographyError.self) {
      try AuthenticatedCipher.aes128GCM.seal(
        [], key: [UInt8](repeating: 0, count: 16), nonce: [UInt8](repeating: 0, count: 8))
    }
  }

  @Test("authentication codes are those that RFC 5869 extracts, appendices A.1 and A.3")
  func authentication() throws {
    let secret = [UInt8](repeating: 0x0b, count: 22)
    #expect(
      Hex.encode(try MessageAuthentication.code(of: secret, key: Array(0...0x0c)))
        == "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5")
    #expect(
      Hex.encode(try MessageAuthentication.code(of: secret, key: []))
        == "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04")
  }

  @Test("both sides agree on the secret of RFC 7748, section 6.1")
  func agreement() throws {
    let alice = try X25519PrivateKey(
      rawRepresentation: #require(
        Hex.decode("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")))
    let bob = try X25519PrivateKey(
      rawRepresentation: #require(
        Hex.decode("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")))
    #expect(
      Hex.encode(alice.publicKey)
        == "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    let secret = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
    #expect(try Hex.encode(alice.sharedSecret(with: bob.publicKey)) == secret)
    #expect(try Hex.encode(bob.sharedSecret(with: alice.publicKey)) == secret)
  }

  @Test("a public key of small order or of another length gives no secret")
  func smallOrder() throws {
    let key = try X25519PrivateKey()
    for other in [
      [UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31), [], [9],
    ] {
      #expect(throws: CryptographyError.self) { try key.sharedSecret(with: other) }
    }
    #expect(
      try X25519PrivateKey(rawRepresentation: key.rawRepresentation()).publicKey == key.publicKey)
    #expect(throws: CryptographyError.self) { try X25519PrivateKey(rawRepresentation: [1, 2]) }
  }
}
