import Foundation
import Testing

@testable import PushGateways

@Suite("The JSON scanner")
struct JSONScannerTests {
  private func isValue(_ bytes: [UInt8]) -> Bool {
    var scanner = JSONScanner(bytes)
    return scanner.skipValue() && scanner.isAtEnd()
  }

  @Test(
    "well-formed values pass",
    arguments: [
      "{}", "[]", "[[],{}]", #"{"a":[1,{"b":[]}],"c":{}}"#, "0", "-0", "10.5e-3", "1E+2", "true",
      "false", "null", #""""#, #""\"\\\/\b\f\n\r\t\u00Ff""#, " [ 1 , 2 ] ",
    ])
  func wellFormed(text: String) { #expect(isValue(Array(text.utf8))) }

  @Test(
    "others do not",
    arguments: [
      "", "[", "]", "[1 2]", "[1,]", "[,1]", "{1:2}", #"{"a":1"b":2}"#, "[}", "{]", "01", "-", "1.",
      ".5", "1e", "+1", "tru", "nulll", #"""#, #""\x""#, #""\u12G4""#, "'a'", "[1]]", "NaN",
    ])
  func malformed(text: String) { #expect(!isValue(Array(text.utf8))) }

  @Test("depth costs no stack")
  func depth() {
    let count = 100_000
    let open = [UInt8](repeating: UInt8(ascii: "["), count: count)
    #expect(!isValue(open))
    #expect(isValue(open + [UInt8](repeating: UInt8(ascii: "]"), count: count)))
  }

  @Test("it agrees with Foundation on every prefix and every changed byte of a text")
  func agreement() {
    let text = Array(#"{"a":[1,-2.5e3,true,null],"b":{"c":"x\n\u0041"},"d":[]} "#.utf8)
    func check(_ bytes: [UInt8]) {
      let theirs = (try? JSONSerialization.jsonObject(with: Data(bytes))) is [String: Any]
      var scanner = JSONScanner(bytes)
      let ours = scanner.object { _, value in value.skipValue() } && scanner.isAtEnd()
      #expect(ours == theirs, "\(String(decoding: bytes, as: UTF8.self))")
    }
    for count in 0...text.count { check(Array(text.prefix(count))) }
    for position in text.indices {
      for byte in Array(#"{}[]",:\0 -e."#.utf8) {
        var changed = text
        changed[position] = byte
        check(changed)
      }
    }
  }
}

@Suite("Retry-After")
struct RetryAfterTests {
  @Test("it reads as the vectors say", arguments: APNsFixture.all.retryAfter.cases)
  func vectors(example: APNsFixture.Pauses.Case) {
    let seconds = RetryAfter.seconds(example.value, now: APNsFixture.all.retryAfter.now)
    switch example.seconds {
    case .exactly(let expected)?: #expect(seconds == expected)
    case .cap?: #expect(seconds == .max)
    case nil: #expect(seconds == nil)
    }
  }

  @Test(
    "dates around leap days and centuries come out right",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
      ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
      ("Sun, 31 Dec 2023 23:59:59 GMT", 1_704_067_199),
      ("Mon, 01 Jan 2024 00:00:00 GMT", 1_704_067_200),
      ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
    ] as [(String, Int64)])
  func dates(text: String, seconds: Int64) {
    #expect(RetryAfter.seconds(text, now: seconds - 7) == 7)
  }

  @Test(
    "what is no date is ignored",
    arguments: [
      "Tue, 14 Nov 2023 22:14:50", "Tue, 32 Nov 2023 22:14:50 GMT", "Tue, 14 Nov 2023 24:14:50 GMT",
      "Tue, 14 Nov 2023 22:14 GMT", "Tue 14 Nov 2023 22:14:50 GMT",
      "Tue, 14 November 2023 22:14:50 GMT",
    ])
  func badDates(text: String) { #expect(RetryAfter.seconds(text, now: 0) == nil) }
}
