import Testing

@testable import Cryptography

@Suite("PEM and DER")
struct EncodingTests {
  @Test("PEM reads several blocks, other text between them, and line ends lost in a form")
  func pem() throws {
    let text =
      PEM.encode(label: "ONE", der: [1, 2, 3]) + "note\n"
      + PEM.encode(label: "TWO", der: Array(repeating: 7, count: 100))
    let blocks = try PEM.blocks(in: text)
    #expect(blocks.map(\.label) == ["ONE", "TWO"])
    #expect(blocks.map(\.der) == [[1, 2, 3], Array(repeating: 7, count: 100)])
    #expect(try PEM.blocks(in: text.replacing("\n", with: " ")) == blocks)
    #expect(try PEM.blocks(in: text.replacing("\n", with: "\\n")) == blocks)
    #expect(try PEM.blocks(in: "no armour").isEmpty)
  }

  @Test(
    "damaged PEM is an error",
    arguments: [
      "-----BEGIN ", "-----BEGIN KEY", "-----BEGIN KEY-----\nAAAA",
      "-----BEGIN KEY-----\nAAAA\n-----END OTHER-----", "-----BEGIN KEY-----\n*\n-----END KEY-----",
    ])
  func damagedPEM(text: String) {
    #expect(throws: CryptographyError.self) { try PEM.blocks(in: text) }
  }

  @Test("DER lengths of all sizes survive, longer forms than needed do not read")
  func derLengths() {
    for count in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
      let contents = [UInt8](repeating: 5, count: count)
      var reader = DERReader(DERReader.element(DERReader.Tag.utf8String, contents))
      #expect(reader.read(DERReader.Tag.sequence) == nil)
      #expect(reader.read(DERReader.Tag.utf8String).map(Array.init) == contents)
      #expect(reader.isAtEnd)
    }
    for bytes: [UInt8] in [
      [0x0C], [0x0C, 0x02, 1], [0x0C, 0x81, 0x01, 1], [0x0C, 0x80], [0x0C, 0x84, 0, 0, 0, 1, 1],
    ] {
      var reader = DERReader(bytes)
      #expect(reader.read(DERReader.Tag.utf8String) == nil)
    }
  }
}
