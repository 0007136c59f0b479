/// One server-sent event, as it was received.
package struct StreamedEvent: Sendable, Equatable {
  package var id: String?
  package var name = "message"
  package var data = ""

  package init() {}
}

/// Splits a byte stream into server-sent events
/// (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
package struct EventStreamParser: Sendable {
  /// Maximum length of a line, or of the data of an event; a longer one ends the stream.
  package static let limit = 1 << 20
  private var line: [UInt8] = []
  private var event = StreamedEvent()
  private var hasData = false
  private var position = 0

  package init() {}

  /// - Throws: An error when a line or an event is longer than ``limit``.
  package mutating func feed(
    _ bytes: some Sequence<UInt8>
  ) throws(SyntaxFault) -> [StreamedEvent] {
    var events: [StreamedEvent] = []
    for byte in bytes {
      position += 1
      if byte == UInt8(ascii: "\n") {
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        if let finished = take(String(decoding: line, as: UTF8.self)) { events.append(finished) }
        line.removeAll(keepingCapacity: true)
      } else {
        guard line.count + event.data.utf8.count < Self.limit else {
          throw SyntaxFault("the event stream holds an event that is too long", at: position)
        }
        line.append(byte)
      }
    }
    return events
  }

  private mutating func take(_ line: String) -> StreamedEvent? {
    if line.isEmpty {
      defer {
        event = StreamedEvent()
        hasData = false
      }
      return hasData ? event : nil
    }
    // By scalars: a combining mark after the colon would make it another character.
    let scalars = line.unicodeScalars
    let colon = scalars.firstIndex(of: ":") ?? scalars.endIndex
    var value = scalars[colon...].dropFirst()
    if value.first == " " { value.removeFirst() }
    switch String(scalars[..<colon]) {
    case "id": event.id = String(value)
    case "event": event.name = String(value)
    case "data":
      event.data += (hasData ? "\n" : "") + String(value)
      hasData = true
    default: break  // A comment, or a field that nobody here reads.
    }
    return nil
  }
}
