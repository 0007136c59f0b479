import HTTP2
import HTTPClient

/// What became of one request to an origin, whichever protocol carried it.
struct LinkReply: Sendable {
  enum Trouble: Hashable, Sendable {
    /// No connection, no reply, or none in time; what happened, for people.
    case unreachable(String)
    /// The origin's name leads to no address that may be connected to.
    case refusedAddress
  }

  /// 0 when there was no reply.
  var status: UInt16 = 0
  /// `nil` when there was a reply.
  var trouble: Trouble?
  /// `Retry-After` as it stands.
  var retryAfter: String?
  /// Of a reply other than 2xx.
  var body: ArraySlice<UInt8> = []

  init(_ trouble: Trouble) { self.trouble = trouble }

  /// The header `retry-after` is the first that the batch asked for.
  init(_ answers: HTTP2ReplyBatch, _ index: Int) {
    let reply = answers.replies[index]
    if let failure = reply.failure {
      trouble = Self.trouble(failure, answers.connectionError)
    } else {
      status = reply.status
      guard !(200...299).contains(reply.status) else { return }
      body = answers.body(of: index)
      retryAfter = answers.value(ofHeader: 0, in: index)
    }
  }

  init(_ result: Result<HTTPReply, HTTPFailure>) {
    switch result {
    case .success(let reply):
      status = reply.status
      guard !(200...299).contains(reply.status) else { return }
      body = reply.body[...]
      retryAfter = reply["retry-after"]
    case .failure(let failure):
      trouble =
        failure.kind == .refusedAddress ? .refusedAddress : .unreachable(failure.description)
    }
  }

  /// For a pool that will not connect for now.
  init(unavailable error: HTTP2ConnectionError?) {
    trouble =
      error?.kind == .refusedAddress
      ? .refusedAddress : .unreachable(error?.reason ?? "too early to connect again")
  }

  private static func trouble(
    _ failure: HTTP2Failure, _ error: HTTP2ConnectionError?
  ) -> Trouble {
    switch failure {
    case .connectFailed, .tlsRejectedCertificate:
      error?.kind == .refusedAddress
        ? .refusedAddress : .unreachable(error?.reason ?? "no connection")
    case .refused: .unreachable("the connection ended before the push was processed")
    case .reset(let code): .unreachable("the stream was reset with code \(code)")
    case .timedOut: .unreachable("no reply in time")
    case .connectionLost: .unreachable("the connection was lost before the reply")
    case .cancelled: .unreachable("stopped before the reply")
    }
  }
}
