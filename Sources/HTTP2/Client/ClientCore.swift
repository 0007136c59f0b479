/// The part of a connection that callers and its thread share.
final class ClientCore: Sendable {
  private let configuration: HTTP2ConnectionConfiguration

  init(_ configuration: HTTP2ConnectionConfiguration) { self.configuration = configuration }

  func start() {}
  func close() {}
  var status: HTTP2ConnectionStatus { HTTP2ConnectionStatus() }

  func ready() async throws(HTTP2ConnectionError) {
    throw HTTP2ConnectionError(
      .connect, "cannot reach \(configuration.host): the transport is not built yet")
  }

  func send(_ batch: HTTP2RequestBatch) async -> HTTP2ReplyBatch {
    var reply = HTTP2Reply()
    reply.failure = .connectFailed
    return HTTP2ReplyBatch(
      replies: Array(repeating: reply, count: batch.count),
      wantedHeaders: batch.replyHeaders.count)
  }
}
