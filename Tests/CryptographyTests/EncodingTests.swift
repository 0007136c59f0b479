import Testing

@testable import Cryptography

@Suite("Encodings")
struct EncodingTests {
  @Test(
    "base 64 follows RFC 4648's own examples",
    arguments: [
      ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
      ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
  func base64(plain: String, encoded: String) {
    let bytes = Array(plain.utf8)
    #expect(Base64.encode(bytes) == encoded)
    #expect(Base64.decode(encoded) == bytes)
    #expect(Base64URL.encode(bytes) == encoded.filter { $0 != "=" })
    #expect(Base64URL.decode(encoded.filter { $0 != "=" }) == bytes)
  }

  @Test("base 64 URL writes - and _ where the standard writes + and /")
  func alphabets() {
    let bytes: [UInt8] = [0xFB, 0xEF, 0xFF]
    #expect(Base64.encode(bytes) == "++//")
    #expect(Base64URL.encode(bytes) == "--__")
  }

  @Test(
    "strict base 64 URL refuses every second spelling",
    arguments: ["Zg==", "Zg=", "Zh", "Zm-", "Z", "Zm8+", "Zm8/", "Zm9v ", "Zm\n9v", "Zmü9"])
  func strictBase64URL(text: String) {
    #expect(Base64URL.decode(text) == nil)
  }

  @Test("standard base 64 may be wrapped and lack its padding, but not have too much")
  func lenientBase64() {
    #expect(Base64.decode(" Zm9v\r\nYg ") == Array("foob".utf8))
    #expect(Base64.decode("Zm9vYg=") == nil)
    #expect(Base64.decode("Zm9v====") == nil)
    #expect(Base64.decode("Zm9v-_") == nil)
  }

  @Test("hexadecimal digits of both cases read, others and odd counts do not")
  func hex() {
    #expect(Hex.encode([0x00, 0xAB, 0xFF]) == "00abff")
    #expect(Hex.decode("00aBFf") == [0x00, 0xAB, 0xFF])
    #expect(Hex.decode("0") == nil)
    #expect(Hex.decode("0g") == nil)
  }

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
