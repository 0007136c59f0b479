/// One HTTP/2 connection over TLS to one server: batches in, batches out.
///
/// A thread of its own drives nghttp2 and OpenSSL with blocking `poll`; callers meet it at one
/// lock and one pipe per batch. It connects at once, and never again: when `status.isDraining`,
/// make another.
package final class HTTP2Connection: Sendable {
  let core: ClientCore

  /// Starts to connect; failures show in `ready()`, `status` and the replies.
  package init(_ configuration: HTTP2ConnectionConfiguration) {
    core = ClientCore(configuration)
    core.start()
  }

  deinit { core.close() }

  /// What the connection is doing now.
  package var status: HTTP2ConnectionStatus { core.status }

  /// Returns when the TLS handshake is done and the peer's first SETTINGS has arrived.
  package func ready() async throws(HTTP2ConnectionError) {
    try await core.ready()
  }

  /// Sends every request of a batch and returns when each has a reply or a failure.
  ///
  /// Batches of several callers share the connection in the order they came, small ones ahead of
  /// large. A batch larger than the free streams waits for them. Cancelling the task resets what is open and returns at once.
  package func send(_ batch: HTTP2RequestBatch) async -> HTTP2ReplyBatch {
    await core.send(batch)
  }

  /// Ends the connection; everything in flight or queued returns as `.cancelled`.
  package func close() { core.close() }
}
