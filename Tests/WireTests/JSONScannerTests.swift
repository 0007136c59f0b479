import Foundation
import Testing
import Wire

@Suite("The JSON reader")
struct JSONScannerTests {
  private func isValue(_ bytes: [UInt8], _ dialect: JSONScanner.Dialect = .strict) -> Bool {
    let isWalked = bytes.withUnsafeBufferPointer { bytes in
      var scanner = JSONScanner(bytes, dialect: dialect)
      do throws(SyntaxFault) {
        try scanner.skipValue()
        try scanner.finish()
        return true
      } catch {
        #expect((0...bytes.count).contains(error.position))
        return false
      }
    }
    let isRead = (try? JSONValue.read(bytes, dialect: dialect)) != nil
    #expect(isRead == isWalked)
    return isWalked
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
      ".5", "1e", "+1", "tru", "nulll", #"""#, #""\x""#, #""\u12G4""#, "[1]]", "NaN", "[1-2]",
    ])
  func malformed(text: String) {
    #expect(!isValue(Array(text.utf8)))
    if text != "{1:2}" { #expect(!isValue(Array(text.utf8), .lenient)) }
  }

  @Test("single quotes and bare names are of the lenient dialect only")
  func dialects() {
    for text in ["'a'", "{a:1}", "{'a':1}", #"'it\'s'"#, "{$a_1:''}"] {
      #expect(!isValue(Array(text.utf8)), "\(text)")
      #expect(isValue(Array(text.utf8), .lenient), "\(text)")
    }
  }

  @Test("nesting ends at the limit, however deep it is")
  func depth() {
    func nested(_ count: Int) -> [UInt8] {
      [UInt8](repeating: UInt8(ascii: "["), count: count)
        + [UInt8](repeating: UInt8(ascii: "]"), count: count)
    }
    let taken = [128, 129, 100_000].map { isValue(nested($0)) }
    #expect(taken == [true, false, false])
    // Each level is what it was when it was opened.
    let mixed = (0..<127).map { $0 % 3 == 0 ? #"{"a":"# : "[" }
    let closing = mixed.reversed().map { $0 == "[" ? "]" : "}" }
    for wrong in 0...closing.count {
      var marks = closing
      if wrong < closing.count { marks[wrong] = marks[wrong] == "]" ? "}" : "]" }
      let isTaken = isValue(Array((mixed.joined() + "1" + marks.joined()).utf8))
      #expect(isTaken == (wrong == closing.count))
    }
    #expect(throws: SyntaxFault.self) { try JSONValue.read(nested(3), depthLimit: 2) }
  }

  @Test("a name that comes twice is refused on request")
  func uniqueNames() throws {
    let text = #"{"a":{"b":1},"c":{"b":1},"\u0061":2}"#
    _ = try JSONValue.read(text.utf8)
    #expect(throws: SyntaxFault.self) { try JSONValue.read(text.utf8, uniqueNames: true) }
    _ = try JSONValue.read(#"{"a":{"a":1}}"#.utf8, uniqueNames: true)
  }

  @Test("a fault is named with its place")
  func places() {
    for (text, position) in [
      ("{\"a\" 1}", 5), ("[1,]", 3), (#"["\x"]"#, 2), ("[1] x", 4), ("[01]", 1), ("\"a", 0),
      ("[\"\u{1}\"]", 2),
    ] {
      do {
        _ = try JSONValue.read(text.utf8)
        Issue.record("\(text) was read")
      } catch {
        #expect(error.position == position, "\(text)")
      }
    }
  }

  @Test("small objects and arrays in a document take no room for more members")
  func room() throws {
    let document = try JSONValue.read(#"{"x":[{},{"a":1},[],[1]]}"#.utf8)
    guard case .array(let items)? = document.member("x") else {
      Issue.record("it is no array")
      return
    }
    let capacities = items.map { item in
      switch item {
      case .object(let members): members.capacity
      case .array(let items): items.capacity
      default: -1
      }
    }
    #expect(capacities[0] == 0 && capacities[2] == 0)
    #expect(capacities.allSatisfy { $0 <= 2 }, "\(capacities)")
  }

  @Test("it agrees with Foundation on every prefix and every changed byte of a text")
  func agreement() {
    let text = Array(#"{"a":[1,-2.5e3,true,null],"b":{"c":"x\n\u0041"},"d":[]} "#.utf8)
    func check(_ bytes: [UInt8]) {
      let theirs = (try? JSONSerialization.jsonObject(with: Data(bytes))) is [String: Any]
      let ours = isValue(bytes) && bytes.first { !$0.isBlank } == UInt8(ascii: "{")
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
