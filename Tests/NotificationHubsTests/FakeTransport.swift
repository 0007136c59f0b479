import Foundation
import NotificationHubs
import Synchronization

/// Answers from a list and keeps what was asked.
final class FakeTransport: HTTPTransport {
  private struct State {
    var replies: [Result<TransportReply, any Error>]
    var requests: [TransportRequest] = []
  }

  private let state: Mutex<State>

  init(_ replies: [Result<TransportReply, any Error>]) {
    state = Mutex(State(replies: replies))
  }

  convenience init(_ replies: TransportReply...) { self.init(replies.map { .success($0) }) }

  var requests: [TransportRequest] { state.withLock { $0.requests } }

  func send(_ request: TransportRequest) async throws -> TransportReply {
    try state.withLock { state in
      state.requests.append(request)
      guard !state.replies.isEmpty else { throw URLError(.cannotConnectToHost) }
      return try state.replies.removeFirst().get()
    }
  }
}
