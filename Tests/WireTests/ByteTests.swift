import Testing
import Wire

@Suite("Bytes")
struct ByteTests {
  @Test("are the same in one piece and copied")
  func pieces() {
    for text in ["", "a", "Tag", "a text that is not kept in place", "\u{e9}"] {
      let lazy = text.utf8.lazy.map { $0 }
      #expect(lazy.withBytes { Array($0) } == Array(text.utf8))
      #expect(text.utf8.withBytes { Array($0) } == Array(text.utf8))
      #expect(lazy.hasSameBytes(as: text.utf8))
      #expect(!(text + "x").utf8.hasSameBytes(as: text.utf8))
      #expect(text.utf8.isEqualIgnoringCase(text.uppercased().utf8) == (text != "\u{e9}"))
    }
  }

  @Test(
    "lose the blanks at both ends, and no others",
    arguments: [("", ""), (" ", ""), (" \t\r\n", ""), ("a", "a"), (" a b\n", "a b"), ("a ", "a")])
  func blanks(text: String, trimmed: String) {
    #expect(text.trimmingBlanks == trimmed)
    #expect(Array(text.utf8.trimmingBlanks) == Array(trimmed.utf8))
  }
}
