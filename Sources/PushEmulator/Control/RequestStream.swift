import HTTPServer
import Wire

/// One open `text/event-stream` of the journal (docs/protocol/emulator.md, section 2.4): each
/// request as it is recorded. Like `EventStream` it has no queue.
struct RequestStream: Sendable {
  let core: EmulatorCore
  /// Only requests after this one.
  let after: Int
  /// Pause between two comment lines.
  let heartbeat: Duration

  private enum Wake: Sendable { case request, heartbeat }

  /// Maximum number of requests fetched at once.
  private static let limit = 256

  /// Writes until the reader disconnects.
  func run(_ writer: HTTPBodyWriter) async throws {
    let (wakes, continuation) = AsyncStream.makeStream(
      of: Wake.self, bufferingPolicy: .bufferingNewest(1))
    let watcher = core.withState { $0.watchRequests { continuation.yield(.request) } }
    let beat = Task {
      while !Task.isCancelled {
        try await Task.sleep(for: heartbeat)
        continuation.yield(.heartbeat)
      }
    }
    defer {
      beat.cancel()
      continuation.finish()
      core.withState { $0.requestWatchers[watcher] = nil }
    }
    try await writer.write(ServerSentEvent.comment("open"))
    var cursor = after
    continuation.yield(.request)
    for await wake in wakes {
      var count = 0
      while let last = try await write(after: cursor, to: writer) {
        cursor = last
        count += 1
      }
      if count == 0, wake == .heartbeat { try await writer.write(ServerSentEvent.comment("")) }
    }
  }

  /// Writes the next requests.
  /// - Returns: The last one; `nil` if there was none.
  private func write(after cursor: Int, to writer: HTTPBodyWriter) async throws -> Int? {
    let entries = core.withState { state in
      // After a reset the numbers start again.
      let cursor = cursor > state.lastRequest ? 0 : cursor
      return state.journal.entries(after: cursor, limit: Self.limit) { _ in true }
    }
    guard let last = entries.last else { return nil }
    var bytes: [UInt8] = []
    for entry in entries {
      bytes += "event: request\nid: \(entry.seq)\ndata: ".utf8
      bytes += entry.json.jsonBytes
      bytes += "\n\n".utf8
    }
    try await writer.write(bytes)
    return last.seq
  }
}
