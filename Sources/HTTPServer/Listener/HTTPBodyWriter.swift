/// The writing end of a streamed body; used by the stream's closure only, one write at a time.
package final class HTTPBodyWriter: Sendable {
  init() {}

  /// Sends bytes and returns once the connection has taken all of them: a slow reader slows its
  /// writer down instead of filling memory.
  package func write(_ bytes: [UInt8]) async throws(HTTPWriteError) {
  }

  /// Sends text as UTF-8.
  package func write(_ text: String) async throws(HTTPWriteError) {
    try await write(Array(text.utf8))
  }
}

/// Why a stream cannot be written any more; the connection is closed in each case.
package enum HTTPWriteError: Error, Equatable {
  /// The client closed the connection.
  case clientGone
  /// The client has not read for longer than `HTTPConfiguration.streamStallTimeout`.
  case stalled
  /// The server is stopping.
  case stopping
}
