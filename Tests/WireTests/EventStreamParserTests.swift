import Testing
import Wire

@Suite("Streams of server-sent events")
struct EventStreamParserTests {
  @Test(
    "a stream is cut into its events, whatever the pieces in which it comes",
    arguments: [1, 2, 1000])
  func pieces(length: Int) throws {
    let text =
      "id: 7\nevent: progress\ndata: {\ndata:}\n: still here\n\ndata: \u{301}x\r\n\r\n\ndata\n\n"
    var parser = EventStreamParser()
    var found: [StreamedEvent] = []
    let bytes = Array(text.utf8)
    for start in stride(from: 0, to: bytes.count, by: length) {
      found += try parser.feed(bytes[start..<min(start + length, bytes.count)])
    }
    #expect(found.map(\.data) == ["{\n}", "\u{301}x", ""])
    #expect(found.map(\.name) == ["progress", "message", "message"])
    #expect(found.map(\.id) == ["7", nil, nil])
  }

  @Test("a mark behind a colon or a blank changes no field")
  func marks() throws {
    var parser = EventStreamParser()
    #expect(try parser.feed("data:\u{301}a\n\n".utf8).map(\.data) == ["\u{301}a"])
    #expect(try parser.feed("data: \u{301}a\n\n".utf8).map(\.data) == ["\u{301}a"])
  }

  @Test("an event or a line that does not end costs a megabyte and no more")
  func limits() throws {
    var parser = EventStreamParser()
    let piece = Array(repeating: UInt8(ascii: "x"), count: EventStreamParser.limit)
    _ = try parser.feed(piece)
    #expect(throws: SyntaxFault.self) { try parser.feed(piece) }
    var event = EventStreamParser()
    let line = Array("data: ".utf8) + piece.prefix(400_000) + [10]
    _ = try event.feed(line + line)
    #expect(throws: SyntaxFault.self) { try event.feed(line) }
  }
}
