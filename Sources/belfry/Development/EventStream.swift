import Foundation
import HTTPClient
import Synchronization

/// One server-sent event.
struct StreamedEvent: Sendable, Equatable {
  var id: String?
  var name = "message"
  var data = ""
}

/// Cuts a byte stream into server-sent events
/// (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).
struct EventStreamParser {
  /// A line longer than this ends the stream: no event of the emulator comes near it.
  static let lineLimit = 1 << 20
  private var line: [UInt8] = []
  private var event = StreamedEvent()
  private var hasData = false

  /// - Throws: When a line is longer than ``lineLimit``.
  mutating func feed(_ bytes: some Sequence<UInt8>) throws -> [StreamedEvent] {
    var events: [StreamedEvent] = []
    for byte in bytes {
      if byte == UInt8(ascii: "\n") {
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        if let finished = take(String(decoding: line, as: UTF8.self)) { events.append(finished) }
        line.removeAll(keepingCapacity: true)
      } else {
        guard line.count < Self.lineLimit else {
          throw CommandFailure(
            "the event stream holds a line that is too long", exitCode: .unreachable)
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
    let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    var value = parts.count == 2 ? parts[1] : ""
    if value.first == " " { value.removeFirst() }
    switch parts[0] {
    case "id": event.id = String(value)
    case "event": event.name = String(value)
    case "data":
      event.data += hasData ? "\n" + value : String(value)
      hasData = true
    default: break  // A comment or a field that is not ours.
    }
    return nil
  }
}

/// Reads a stream of server-sent events.
enum EventStreamReader {
  private final class Parser: Sendable {
    let parser = Mutex(EventStreamParser())
  }

  /// Opens the stream; it ends when the server ends it, and is closed when the caller drops it.
  static func read(_ url: URL) -> AsyncThrowingStream<StreamedEvent, any Error> {
    AsyncThrowingStream { continuation in
      let task = Task {
        let state = Parser()
        do {
          let status = try await ClientTransport.shared.stream(url, accept: "text/event-stream") {
            bytes in
            for event in try state.parser.withLock({ try $0.feed(bytes) }) {
              continuation.yield(event)
            }
          }
          guard status == 200 else {
            throw CommandFailure(
              "the event stream was refused with status \(status)", exitCode: .unreachable)
          }
          continuation.finish()
        } catch let error as HTTPFailure {
          continuation.finish(
            throwing: CommandFailure("the event stream broke: \(error)", exitCode: .unreachable))
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }
}
