import Testing
import Wire

@testable import NotificationHubs

@Suite("JSON")
struct JSONValueTests {
  @Test(
    "documents read and print back",
    arguments: [
      "null", "true", "[]", "{}", "-0.5e+10", #""a\"\\\b\f\n\r\t\u0001é😀/""#,
      #"{"b":1,"a":[true,false,null,{"c":""}]}"#, "123456789012345678901234567890",
    ])
  func roundTrip(text: String) throws {
    #expect(String(decoding: try JSONValue.parse(text.utf8).jsonBytes, as: UTF8.self) == text)
  }

  @Test(
    "escapes",
    arguments: [
      (#""\u00e9\ud83d\ude00\/""#, "é😀/"), (#""\ud83d""#, "\u{FFFD}"),
      (#""\ud83dA""#, "\u{FFFD}A"), (#""\ud83d\u0041""#, "\u{FFFD}A"),
      (#"'it\'s "x"'"#, #"it's "x""#),
    ])
  func escapes(text: String, value: String) throws {
    #expect(try JSONValue.parse(text.utf8) == .string(value))
  }

  @Test(
    "malformed documents are refused",
    arguments: [
      "", " ", "{", "}", "[", "[1,]", "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{,}", "[1 2]", "01",
      "1.", "-", "1e", "+1", ".5", "tru", "truex", "nul", "\"", "'a\"", #""\x""#, #""\u12""#,
      #""\u12G4""#, "\"\n\"", "\"a\\", "{} {}", "undefined", "NaN", "{a b:1}", "/* */1", "[\"a\"",
    ])
  func malformed(text: String) {
    #expect(throws: WireFormatError.self) { try JSONValue.parse(text.utf8) }
  }

  @Test("bytes that are not UTF-8 are refused")
  func invalidUTF8() {
    for bytes: [UInt8] in [
      [0x22, 0xFF, 0x22], [0x22, 0x5C, 0x6E, 0xC3, 0x22], [0x22, 0xC0, 0xAF, 0x22],
    ] {
      #expect(throws: WireFormatError.self) { try JSONValue.parse(bytes) }
    }
  }

  @Test("nesting has an end", arguments: ["[", #"{"a":"#])
  func depth(opening: String) throws {
    let deep = String(repeating: opening, count: 1_000_000)
    #expect(throws: WireFormatError.self) { try JSONValue.parse(deep.utf8) }
    let most = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
    _ = try JSONValue.parse(most.utf8)
    #expect(throws: WireFormatError.self) { try JSONValue.parse(("[" + most + "]").utf8) }
  }

  @Test("no cut of a document traps or passes")
  func truncation() {
    let whole = Array(#"{"a":[1.5e3,"x\u00e9\ud83d\ude00",true,null],'b':{c:'d'}}"#.utf8)
    for end in 0..<whole.count {
      #expect(throws: WireFormatError.self) { try JSONValue.parse(whole[..<end]) }
    }
  }
}
