/// An event of a `text/event-stream` body (HTML standard, section 9.2.6).
package struct ServerSentEvent: Sendable, Equatable {
  /// The event's type; `nil` for what browsers call `message`.
  package var event: String?
  /// The id, which a browser sends back as `Last-Event-ID` when it reconnects.
  package var id: String?
  /// The payload, which may have several lines.
  package var data: String

  package init(event: String? = nil, id: String? = nil, data: String) {
    self.event = event
    self.id = id
    self.data = data
  }

  /// The headers of a reply that streams events.
  package static let headers: HTTPHeaders = [
    "Content-Type": "text/event-stream", "Cache-Control": "no-cache",
  ]

  /// The event in wire form, with its closing empty line. `event` and `id` are truncated at a line
  /// end, which the format cannot represent there.
  package var bytes: [UInt8] {
    var text = ""
    if let event { text += "event: \(Self.firstLine(event))\n" }
    if let id { text += "id: \(Self.firstLine(id))\n" }
    for line in Self.lines(data) { text += "data: \(line)\n" }
    return Array((text + "\n").utf8)
  }

  /// A comment in wire form, which keeps proxies from closing an idle stream; readers ignore it.
  package static func comment(_ text: String) -> [UInt8] {
    Array((lines(text).map { ": \($0)\n" }.joined() + "\n").utf8)
  }

  private static func firstLine(_ text: String) -> Substring { lines(text).first ?? "" }

  private static func lines(_ text: String) -> [Substring] {
    text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" || $0 == "\r" }
  }
}
