import Testing
import Wire

@testable import Cryptography

@Suite("P-256 keys")
struct P256KeyTests {
  let test = Vectors.all.keys.p256Test
  let other = Vectors.all.keys.p256Other

  @Test("a private key reads from PKCS#8, SEC 1 and the body alone, and is the same key")
  func privateForms() throws {
    let body = test.privatePkcs8Pem.split(separator: "\n").dropFirst().dropLast()
    let forms = [
      test.privatePkcs8Pem, test.privateSec1Pem, body.joined(separator: "\n"),
      body.joined(), test.privatePkcs8Pem.replacing("\n", with: "\\n"),
    ]
    for form in forms {
      let key = try P256PrivateKey(pem: form)
      #expect(try key.publicKey().pem == test.publicSpkiPem)
      #expect(try key.pem() == test.privatePkcs8Pem)
    }
  }

  @Test("a public key reads from PEM and from its point, and is the same key")
  func publicForms() throws {
    let point = try #require(Hex.decode(test.publicUncompressedHex))
    let key = try P256PublicKey(pem: test.publicSpkiPem)
    #expect(key.point == point)
    #expect(try P256PublicKey(point: point) == key)
    #expect(try P256PublicKey(pem: other.publicSpkiPem) != key)
  }

  @Test("a point off the curve, at infinity, compressed or cut short is refused")
  func badPoints() throws {
    let point = try #require(Hex.decode(test.publicUncompressedHex))
    var off = point
    off[64] ^= 1
    let cases: [[UInt8]] = [off, [0], [0x02] + point[1...32], Array(point.dropLast()), []]
    for bytes in cases {
      #expect(throws: CryptographyError.self) { try P256PublicKey(point: bytes) }
    }
  }

  @Test("what is no P-256 private key is refused with a reason")
  func badPrivateKeys() {
    func kind(_ text: String) -> CryptographyError.Kind? {
      do throws(CryptographyError) {
        _ = try P256PrivateKey(pem: text)
        return nil
      } catch {
        return error.kind
      }
    }
    #expect(kind("") == .malformed)
    #expect(kind("not a key") == .malformed)
    #expect(kind("AAAA") == .malformed)
    #expect(kind(test.publicSpkiPem) == .malformed)
    #expect(kind(String(test.privatePkcs8Pem.dropLast(30))) == .malformed)
    #expect(kind(Vectors.all.keys.rsaTest.privatePkcs8Pem) == .unsupported)
    let encrypted = test.privatePkcs8Pem.replacing("PRIVATE KEY", with: "ENCRYPTED PRIVATE KEY")
    #expect(kind(encrypted) == .unsupported)
  }

  @Test("a new key signs, its public half verifies, another's does not")
  func roundTrip() throws {
    let key = try P256PrivateKey()
    let message = Array("message".utf8)
    let signature = try key.signature(for: message)
    #expect(signature.count == 64)
    #expect(try key.publicKey().verifies(signature, for: message))
    #expect(try !key.publicKey().verifies(signature, for: message + [0]))
    #expect(try !P256PublicKey(pem: other.publicSpkiPem).verifies(signature, for: message))
    #expect(try P256PrivateKey(pem: key.pem()).publicKey() == key.publicKey())
  }

  @Test("RFC 6979's own signature verifies; with zero r or s, or another length, none does")
  func knownSignature() throws {
    let sample = try #require(test.rfc6979Sha256Sample)
    let key = try P256PublicKey(pem: test.publicSpkiPem)
    let message = Array(sample.messageUtf8.utf8)
    let r = try #require(Hex.decode(sample.rHex))
    let s = try #require(Hex.decode(sample.sHex))
    let zero = [UInt8](repeating: 0, count: 32)
    #expect(key.verifies(r + s, for: message))
    for wrong in [zero + s, r + zero, zero + zero, r, r + s + [0], [], [0] + r + s] {
      #expect(!key.verifies(wrong, for: message))
    }
    for position in [0, 31, 32, 63] {
      var flipped = r + s
      flipped[position] ^= 0x10
      #expect(!key.verifies(flipped, for: message))
    }
  }

  @Test("raw and DER signatures convert both ways", arguments: Vectors.all.ecdsaRawDer.cases)
  func conversions(example: Vectors.Conversion) throws {
    let raw = try #require(Hex.decode(example.rawHex))
    let der = try #require(Hex.decode(example.derHex))
    #expect(ECDSASignature.der(raw: raw) == der)
    #expect(ECDSASignature.raw(der: der) == raw)
  }

  @Test(
    "DER that is not strict has no raw form",
    arguments: [
      "", "30", "3000", "3003020101", "300602010102010100", "3007020101020101", "3006020181020101",
      "300702020001020101", "300702010102020001", "3006020100030101", "3009020101020101020101",
      "3026022101000000000000000000000000000000000000000000000000000000000000000201ff",
    ])
  func looseDER(hex: String) throws {
    #expect(ECDSASignature.raw(der: try #require(Hex.decode(hex))) == nil)
  }
}
