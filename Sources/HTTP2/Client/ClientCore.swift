import Foundation
import Synchronization

/// The part of a connection that callers and its thread share: a mailbox under one lock, a pipe
/// that wakes the thread, and the status it publishes.
final class ClientCore: Sendable {
  private struct Shared {
    var status = HTTP2ConnectionStatus()
    var mailbox: [PendingBatch] = []
    var cancellations: [PendingBatch] = []
    var readyWaiters: [ReadyWaiter] = []
    var isClosing = false
  }

  /// The contents of the mailbox when the thread reads it.
  struct Mail {
    var batches: [PendingBatch]
    var cancellations: [PendingBatch]
    var isClosing: Bool
  }

  let configuration: HTTP2ConnectionConfiguration
  let pipe: WakePipe?
  private let shared = Mutex(Shared())

  init(_ configuration: HTTP2ConnectionConfiguration) {
    self.configuration = configuration
    pipe = WakePipe()
  }

  /// Starts the thread, which holds the core until the connection has ended.
  func start() {
    guard let pipe else {
      let reason = "cannot connect: the process is out of descriptors"
      finish(HTTP2ConnectionError(.connect, reason), goAway: nil)
      return
    }
    let thread = Thread { ClientSession.run(self, pipe) }
    thread.name = "http2-client"
    thread.start()
  }

  func close() {
    let orphans = shared.withLock { shared -> ([PendingBatch], HTTP2ConnectionStatus) in
      guard shared.status.state != .closed else { return ([], shared.status) }
      shared.isClosing = true
      defer { shared.mailbox = [] }
      return (shared.mailbox, shared.status)
    }
    pipe?.wake()
    for pending in orphans.0 { pending.fail(.cancelled, status: orphans.1) }
  }

  var status: HTTP2ConnectionStatus {
    shared.withLock { shared in
      var status = shared.status
      status.queued += shared.mailbox.reduce(0) { $0 + $1.batch.count }
      return status
    }
  }

  func ready() async throws(HTTP2ConnectionError) {
    let waiter = ReadyWaiter()
    let known = shared.withLock { shared -> ReadyWaiter.Outcome? in
      switch shared.status.state {
      case .ready, .draining: return .success(())
      case .closed:
        let unknown = HTTP2ConnectionError(.closed, "the connection is closed")
        return .failure(shared.status.error ?? unknown)
      case .connecting:
        shared.readyWaiters.append(waiter)
        return nil
      }
    }
    if let known { waiter.resume(known) }
    let outcome = await withTaskCancellationHandler {
      await withCheckedContinuation { waiter.await($0) }
    } onCancel: {
      let reason = "cancelled while waiting for \(configuration.host) to be ready"
      waiter.resume(.failure(HTTP2ConnectionError(.cancelled, reason)))
    }
    try outcome.get()
  }

  func send(_ batch: HTTP2RequestBatch) async -> HTTP2ReplyBatch {
    guard batch.count > 0 else { return HTTP2ReplyBatch(replies: [], wantedHeaders: 0) }
    let pending = PendingBatch(batch)
    return await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        pending.await(waiter)
        enqueue(pending)
      }
    } onCancel: {
      cancel(pending)
    }
  }

  private func enqueue(_ pending: PendingBatch) {
    let refusal = shared.withLock { shared -> (HTTP2Failure, HTTP2ConnectionStatus)? in
      if pending.isCancelled.load(ordering: .sequentiallyConsistent) || shared.isClosing {
        return (.cancelled, shared.status)
      }
      if shared.status.state == .closed {
        return (Self.unsentFailure(after: shared.status.error), shared.status)
      }
      shared.mailbox.append(pending)
      return nil
    }
    if let refusal {
      pending.fail(refusal.0, status: refusal.1)
    } else {
      pipe?.wake()
    }
  }

  /// Takes the batch back if the thread has not collected it; otherwise asks the thread to cancel
  /// it.
  private func cancel(_ pending: PendingBatch) {
    pending.isCancelled.store(true, ordering: .sequentiallyConsistent)
    let status = shared.withLock { shared -> HTTP2ConnectionStatus? in
      if let index = shared.mailbox.firstIndex(where: { $0 === pending }) {
        shared.mailbox.remove(at: index)
        return shared.status
      }
      if shared.status.state != .closed { shared.cancellations.append(pending) }
      return nil
    }
    if let status {
      pending.fail(.cancelled, status: status)
    } else {
      pipe?.wake()
    }
  }

  /// The failure of a request that was never sent because the connection ended with this error.
  static func unsentFailure(after error: HTTP2ConnectionError?) -> HTTP2Failure {
    switch error?.kind {
    case .tlsRejectedCertificate: .tlsRejectedCertificate
    case .closed, .cancelled: .cancelled
    case .lookup, .refusedAddress, .connect, .connectTimedOut, .tls, .untrustedPeer,
      .wrongProtocol, .configuration:
      .connectFailed
    case .protocolViolation, .pingTimedOut, .lost, .drained, .idle, nil: .refused
    }
  }

  // MARK: The thread's side

  /// Whether the owner wants the connection to end.
  var isClosing: Bool { shared.withLock { $0.isClosing } }

  /// Empties the mailbox.
  func collect() -> Mail {
    shared.withLock { shared in
      defer {
        shared.mailbox = []
        shared.cancellations = []
      }
      return Mail(
        batches: shared.mailbox, cancellations: shared.cancellations, isClosing: shared.isClosing)
    }
  }

  /// Publishes the status; the first one other than `connecting` resumes callers of `ready`.
  func publish(_ status: HTTP2ConnectionStatus) {
    let waiters = shared.withLock { shared -> [ReadyWaiter] in
      shared.status = status
      guard status.state != .connecting else { return [] }
      defer { shared.readyWaiters = [] }
      return shared.readyWaiters
    }
    for waiter in waiters { waiter.resume(.success(())) }
  }

  /// The last call of the thread: nothing enters the mailbox from here on, and its contents fail.
  func finish(_ error: HTTP2ConnectionError, goAway: HTTP2GoAway?) {
    let (left, waiters, status) = shared.withLock { shared in
      shared.status.state = .closed
      shared.status.inFlight = 0
      shared.status.queued = 0
      shared.status.error = error
      shared.status.goAway = goAway
      defer {
        shared.mailbox = []
        shared.cancellations = []
        shared.readyWaiters = []
      }
      return (shared.mailbox, shared.readyWaiters, shared.status)
    }
    for waiter in waiters { waiter.resume(.failure(error)) }
    for pending in left { pending.fail(Self.unsentFailure(after: error), status: status) }
  }
}

/// A caller that waits for a connection to be ready; resumed once, with the first outcome.
final class ReadyWaiter: Sendable {
  typealias Outcome = Result<Void, HTTP2ConnectionError>

  private struct State {
    var outcome: Outcome?
    var continuation: CheckedContinuation<Outcome, Never>?
  }

  private let state = Mutex(State())

  /// Waits for the outcome, which may be known already.
  func await(_ continuation: CheckedContinuation<Outcome, Never>) {
    let known = state.withLock { state in
      if state.outcome == nil { state.continuation = continuation }
      return state.outcome
    }
    if let known { continuation.resume(returning: known) }
  }

  /// Reports the outcome; a second call does nothing.
  func resume(_ outcome: Outcome) {
    let continuation = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      return state.continuation.take()
    }
    continuation?.resume(returning: outcome)
  }
}
