import Testing
import Wire


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
}

@Suite("Dates, numbers and addresses")
struct PlainFormTests {
  @Test("the date of HTTP is written and read")
  func httpDates() {
    for (seconds, text) in [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (951_825_600, "Tue, 29 Feb 2000 12:00:00 GMT"),
      (1_704_067_199, "Sun, 31 Dec 2023 23:59:59 GMT"),
      (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
    ] {
      #expect(WireDate.http(seconds) == text)
      #expect(WireDate.parseHTTP(text) == seconds)
    }
    #expect(WireDate.http(-1) == "Wed, 31 Dec 1969 23:59:59 GMT")
  }

  @Test("a UUID has 36 characters, leading zeros too")
  func uuid() {
    #expect(
      UUIDText.text(high: 0x0123_4567_89AB_CDEF, low: 0xF)
        == "01234567-89ab-cdef-0000-00000000000f")
  }

  @Test("each style of percent-encoding keeps its own characters")
  func styles() {
    func encoded(_ style: PercentEncoding.Style) -> String {
      var out: [UInt8] = []
      PercentEncoding.append("aZ9 -._~*+é".utf8, style, to: &out)
      return String(decoding: out, as: UTF8.self)
    }
    #expect(encoded(.url) == "aZ9%20-._~%2A%2B%C3%A9")
    #expect(encoded(.form) == "aZ9+-._%7E*%2B%C3%A9")
    #expect(encoded(.php) == "aZ9+-._%7E%2A%2B%C3%A9")
  }

  @Test("bytes that are not UTF-8 are no text")
  func utf8() {
    for bytes: [UInt8] in [[0xFF], [0xC3], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0x41, 0xF8]] {
      #expect(String(checkingUTF8: bytes) == nil)
    }
    #expect(String(checkingUTF8: "é\u{FFFD}😀".utf8) == "é\u{FFFD}😀")
  }
}
