import Testing
import Wire

@testable import Cryptography

@Suite("Digests, random bytes and comparison")
struct PrimitiveTests {
  @Test("the digests of 'abc' are those of FIPS 180")
  func digests() {
    let message = Array("abc".utf8)
    #expect(
      Hex.encode(Digest.sha256(message))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(Hex.encode(Digest.sha1(message)) == "a9993e364706816aba3e25717850c26c9cd0d89d")
    #expect(
      Hex.encode(Digest.sha256([]))
        == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
  }

  @Test("bytes that come in pieces have the digest of all of them")
  func stream() throws {
    let digest = try SHA256Stream()
    for piece in ["a", "", "bc"] { digest.update(Array(piece.utf8)) }
    #expect(digest.finish() == Digest.sha256(Array("abc".utf8)))
    #expect(try SHA256Stream().finish() == Digest.sha256([]))
  }

  @Test("a key from a password is that of RFC 7914, and no cost takes the machine")
  func key() throws {
    let salt = Array("SodiumChloride".utf8)
    // The first half of the vector's 64 bytes.
    #expect(
      Hex.encode(try PasswordHash.key(from: "pleaseletmein", salt: salt, cost: 14))
        == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2")
    for cost in [9, 18, 63] {
      #expect(throws: CryptographyError.self) {
        _ = try PasswordHash.key(from: "pleaseletmein", salt: salt, cost: cost)
      }
    }
  }

  @Test("random bytes come in the number asked for and differ")
  func random() throws {
    #expect(try SecureRandom.bytes(0).isEmpty)
    let first = try SecureRandom.bytes(32)
    #expect(first.count == 32)
    #expect(try first != SecureRandom.bytes(32))
  }

  @Test("the comparison sees a difference at either end and in length")
  func comparison() {
    #expect(ConstantTime.equal([1, 2, 3], [1, 2, 3]))
    #expect(ConstantTime.equal([], []))
    #expect(!ConstantTime.equal([1, 2, 3], [0, 2, 3]))
    #expect(!ConstantTime.equal([1, 2, 3], [1, 2, 4]))
    #expect(!ConstantTime.equal([1, 2, 3], [1, 2]))
  }
}
