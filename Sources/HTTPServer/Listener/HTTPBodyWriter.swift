/// The writing end of a streamed body; used by the stream's closure only, one write at a time.
package struct HTTPBodyWriter: Sendable {
  private let channel: BodyChannel

  init(channel: BodyChannel) { self.channel = channel }

  /// Sends bytes and returns once the connection has taken all of them: a slow reader slows its
  /// writer down instead of filling memory.
  package func write(_ bytes: [UInt8]) async throws(HTTPWriteError) {
    try await channel.write(bytes)
  }

  /// Sends text as UTF-8.
  package func write(_ text: String) async throws(HTTPWriteError) {
    try await channel.write(Array(text.utf8))
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
