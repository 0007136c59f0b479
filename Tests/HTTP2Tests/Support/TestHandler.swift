import HTTP2
import Synchronization

/// A handler made of closures that also notes what it saw.
final class TestHandler: HTTP2ServerHandler {
  typealias OnRequest = @Sendable (HTTP2ServerRequest, HTTP2ServerConnection) -> Void

  struct Seen {
    var requests: [HTTP2ServerRequest] = []
    var peakStreams = 0
    var closedStreams: [Int32: UInt32] = [:]
    var connections: [HTTP2ServerConnection] = []
    var closedConnections = 0
  }

  private let seen = Mutex(Seen())
  private let accept: @Sendable (UInt64) -> HTTP2AcceptDecision
  private let opened: @Sendable (HTTP2ServerConnection) -> Void
  private let headers: OnRequest
  private let request: OnRequest

  init(
    accept: @escaping @Sendable (UInt64) -> HTTP2AcceptDecision = { _ in .proceed },
    opened: @escaping @Sendable (HTTP2ServerConnection) -> Void = { _ in },
    headers: @escaping OnRequest = { _, _ in },
    request: @escaping OnRequest = { request, connection in
      connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
    }
  ) {
    self.accept = accept
    self.opened = opened
    self.headers = headers
    self.request = request
  }

  /// Only what is done with a request matters.
  convenience init(answering request: @escaping OnRequest) {
    self.init(request: request)
  }

  /// Never answers.
  static func silent() -> TestHandler { TestHandler(request: { _, _ in }) }

  func look<T: Sendable>(_ body: (Seen) -> T) -> T { seen.withLock { body($0) } }

  /// Paths in the order they came.
  var paths: [String] { look { $0.requests.map(\.path) } }

  func connectionAccepted(id: UInt64) -> HTTP2AcceptDecision { accept(id) }

  func connectionOpened(_ connection: HTTP2ServerConnection) {
    seen.withLock { $0.connections.append(connection) }
    opened(connection)
  }

  func receivedHeaders(
    _ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection
  ) -> String? {
    headers(request, connection)
    return request.fields.firstBytes("authorization").map { String(decoding: $0, as: UTF8.self) }
  }

  func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
    seen.withLock { seen in
      seen.requests.append(request)
      seen.peakStreams = max(seen.peakStreams, connection.openStreams)
    }
    self.request(request, connection)
  }

  func streamClosed(_ stream: Int32, code: UInt32, on connection: HTTP2ServerConnection) {
    seen.withLock { $0.closedStreams[stream] = code }
  }

  func connectionClosed(_ connection: HTTP2ServerConnection) {
    seen.withLock { $0.closedConnections += 1 }
  }
}
