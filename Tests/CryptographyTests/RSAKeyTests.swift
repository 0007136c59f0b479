import Testing

@testable import Cryptography

@Suite("RSA keys and RS256")
struct RSAKeyTests {
  private let oauth = PushVectors.all.fcmOauth

  @Test("an assertion is signed as the published vector says")
  func vector() throws {
    let key = try RSAPrivateKey(pem: Vectors.all.keys.rsaTest.privatePkcs8Pem)
    let token = try CompactJWS.sign(
      header: Array(oauth.headerJson.utf8), claims: Array(oauth.claimsJson.utf8), with: key)
    #expect(token == oauth.signingInput + "." + oauth.signatureB64U)
    let read = try CompactJWS(token)
    #expect(read.verifies(with: try key.publicKey()))
    #expect(read.verifies(with: try RSAPublicKey(pem: Vectors.all.keys.rsaTest.publicSpkiPem)))
    #expect(!read.verifies(with: try RSAPrivateKey().publicKey()))
  }

  @Test("the line breaks of a service account's key may have become two characters")
  func lineBreaks() throws {
    let pem = Vectors.all.keys.rsaTest.privatePkcs8Pem
    let key = try RSAPrivateKey(pem: pem.replacing("\n", with: "\\n"))
    #expect(try key.pem() == pem)
  }

  @Test("a key of another kind is refused")
  func otherKinds() throws {
    let elliptic = Vectors.all.keys.p256Test
    #expect(throws: CryptographyError.self) { try RSAPrivateKey(pem: elliptic.privatePkcs8Pem) }
    #expect(throws: CryptographyError.self) { try RSAPublicKey(pem: elliptic.publicSpkiPem) }
    #expect(throws: CryptographyError.self) { try RSAPrivateKey(pem: "no key") }
  }

  @Test("nothing but a signature of the key verifies")
  func badSignatures() throws {
    let key = try RSAPublicKey(pem: Vectors.all.keys.rsaTest.publicSpkiPem)
    for bytes in [[], [UInt8](repeating: 0, count: 256), [UInt8](repeating: 0xFF, count: 4096)] {
      #expect(!key.verifies(bytes, for: [1, 2, 3]))
    }
  }
}
