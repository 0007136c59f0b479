package import HTTP2
package import HTTPClient

/// One HTTP/2 connection to a push service. It connects when it is created and never again; once
/// released, it closes when nothing is in flight on it.
package protocol PushConnection: Sendable {
  /// The current status.
  var status: HTTP2ConnectionStatus { get }

  /// Sends every request of a batch and returns when each has a reply or a failure. Cancelling the
  /// task returns at once.
  func send(_ batch: HTTP2RequestBatch) async -> HTTP2ReplyBatch

  /// Ends the connection; everything in flight or queued returns as `.cancelled`.
  func close()
}

extension HTTP2Connection: PushConnection {}

/// A client with HTTP/1.1 for push services and token services.
package protocol PushSession: Sendable {
  /// Sends calls, as many at once as the lane allows, and waits for all of them. `goesOn` is called
  /// after each; once it returns false, the remaining ones get `.notSent`.
  func send(
    _ calls: [HTTPCall], lane: HTTPLane,
    goesOn: @escaping @Sendable (_ call: Int, Result<HTTPReply, HTTPFailure>) -> Bool
  ) async -> [Result<HTTPReply, HTTPFailure>]

  /// Ends all calls and connections now; later calls fail.
  func close()
}

extension HTTPSession: PushSession {}

extension PushSession {
  /// Sends one call.
  func send(_ call: HTTPCall) async throws(HTTPFailure) -> HTTPReply {
    try await send([call], lane: HTTPLane(limit: 1)) { _, _ in true }[0].get()
  }
}

/// Factories of the transports for pushes: the network's in the program, models of push services in
/// the simulator. Threads, sockets and name resolution are behind these, and nowhere else in this
/// module.
package struct PushTransport: Sendable {
  package let connect: @Sendable (HTTP2ConnectionConfiguration) -> any PushConnection
  package let session: @Sendable (HTTPSessionConfiguration) -> any PushSession

  package init(
    connect: @escaping @Sendable (HTTP2ConnectionConfiguration) -> any PushConnection,
    session: @escaping @Sendable (HTTPSessionConfiguration) -> any PushSession
  ) {
    self.connect = connect
    self.session = session
  }

  package static let network = PushTransport(
    connect: { HTTP2Connection($0) }, session: { HTTPSession($0) })
}
