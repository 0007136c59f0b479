import Synchronization

/// A batch on its way to its replies: what the caller and the connection's thread share.
///
/// It is in exactly one place at a time: the mailbox (the core's lock) or the thread. Who takes it
/// out resumes it.
final class PendingBatch: Sendable {
  let batch: HTTP2RequestBatch
  let isCancelled = Atomic<Bool>(false)
  private let continuation = Mutex<CheckedContinuation<HTTP2ReplyBatch, Never>?>(nil)

  init(_ batch: HTTP2RequestBatch) { self.batch = batch }

  func await(_ waiter: CheckedContinuation<HTTP2ReplyBatch, Never>) {
    continuation.withLock { $0 = waiter }
  }

  /// Gives the caller its replies; a second call does nothing.
  func resume(_ replies: HTTP2ReplyBatch) {
    let waiter = continuation.withLock { $0.take() }
    waiter?.resume(returning: replies)
  }

  /// Gives the caller the same failure for every request, none of which was sent.
  func fail(_ failure: HTTP2Failure, status: HTTP2ConnectionStatus) {
    var reply = HTTP2Reply()
    reply.failure = failure
    var replies = HTTP2ReplyBatch(
      replies: Array(repeating: reply, count: batch.count),
      wantedHeaders: batch.replyHeaders.count)
    replies.goAway = status.goAway
    replies.connectionError = status.error
    resume(replies)
  }
}
