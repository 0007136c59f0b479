import Foundation
import Testing

@testable import SecurePush

@Suite("HPKE, base mode (RFC 9180)")
struct HPKETests {
  struct Document: Decodable {
    let vectors: [Vector]
    static let vectors: [Vector] = {
      let url = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Fixtures/hpke-vectors.json")
      guard let data = try? Data(contentsOf: url),
        let document = try? JSONDecoder().decode(Document.self, from: data)
      else { return [] }
      return document.vectors
    }()
  }

  struct Vector: Decodable, CustomTestStringConvertible {
    struct Encryption: Decodable { let aad, ct, nonce, pt: String }
    let aeadID: UInt8
    let info, skEm, skRm, pkEm, pkRm, enc, sharedSecret, key, baseNonce, exporterSecret: String
    let encryptions: [Encryption]
    var testDescription: String { "AEAD \(aeadID)" }
  }

  @Test("the file holds a vector for each suite")
  func complete() {
    #expect(Document.vectors.map(\.aeadID) == HPKESuite.allCases.map(\.rawValue))
  }

  @Test("both sides come to the RFC's secrets, keys and ciphertexts", arguments: Document.vectors)
  func vector(_ vector: Vector) throws {
    let suite = try #require(HPKESuite(rawValue: vector.aeadID))
    let recipient = try AgreementKey(rawRepresentation: bytes(vector.skRm))
    let ephemeral = try AgreementKey(rawRepresentation: bytes(vector.skEm))
    #expect(recipient.publicKey == bytes(vector.pkRm))
    #expect(ephemeral.publicKey == bytes(vector.pkEm))

    let sent = try KeyEncapsulation.encapsulate(to: recipient.publicKey, ephemeral: ephemeral)
    #expect(sent.encapsulated == bytes(vector.enc))
    #expect(sent.secret == bytes(vector.sharedSecret))
    #expect(try KeyEncapsulation.decapsulate(sent.encapsulated, with: recipient) == sent.secret)

    let context = try HPKEContext(
      suite: suite, sharedSecret: sent.secret, info: bytes(vector.info))
    #expect(context.key == bytes(vector.key))
    #expect(context.baseNonce == bytes(vector.baseNonce))
    #expect(context.exporterSecret == bytes(vector.exporterSecret))
    for (sequence, encryption) in vector.encryptions.enumerated() {
      let plaintext = bytes(encryption.pt)
      let associated = bytes(encryption.aad)
      let sealed = try context.seal(
        plaintext, associated: associated, sequence: UInt64(sequence))
      #expect(sealed == bytes(encryption.ct))
      #expect(
        try context.open(sealed, associated: associated, sequence: UInt64(sequence)) == plaintext)
      #expect(throws: (any Error).self) {
        try context.open(sealed, associated: associated, sequence: UInt64(sequence + 1))
      }
    }
  }

  @Test("an encapsulated key of small order gives no secret")
  func smallOrder() throws {
    let key = try AgreementKey()
    #expect(throws: (any Error).self) {
      try KeyEncapsulation.decapsulate([UInt8](repeating: 0, count: 32), with: key)
    }
    #expect(throws: (any Error).self) { try KeyEncapsulation.decapsulate([1, 2, 3], with: key) }
  }

  private func bytes(_ hex: String) -> [UInt8] {
    stride(from: 0, to: hex.utf8.count, by: 2).compactMap { offset in
      let start = hex.index(hex.startIndex, offsetBy: offset)
      return UInt8(hex[start..<hex.index(start, offsetBy: 2)], radix: 16)
    }
  }
}
