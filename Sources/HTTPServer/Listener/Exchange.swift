import CMicrohttpd
import HTTP2
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The HTTP/1.1 or HTTP/2 side on which a request was received, and which sends its reply.
protocol RequestOwner: AnyObject, Sendable {
  /// The number of the connection, as in `HTTPRequest.connection`.
  var connectionNumber: UInt64 { get }
  /// Whether the reply is no longer wanted, or already exists.
  var isOver: Bool { get }
  /// Delivers the reply; has no effect if there is one already or the client is gone.
  func answer(_ response: HTTPResponse)
  /// Associates the task in which the handler runs; called before its first suspension or just
  /// after it.
  func runs(in task: Task<Void, Never>)
}

/// One HTTP/1.1 request on a connection, with its reply.
///
/// Created when the request line is known, and released when libmicrohttpd reports the request
/// completed. `intake` belongs to the connection's thread. `state` is shared with the task that
/// runs the handler; the connection is suspended and resumed under its lock, so it is resumed
/// exactly once, and never after its end.
// `intake`: the connection's thread; rest: Mutex
final class Exchange: RequestOwner, @unchecked Sendable {
  /// The parts received so far.
  struct Intake {
    var target: [UInt8]
    var method = HTTPMethod.get
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    /// The number of body bytes received, including discarded ones.
    var received = 0
    var headSeen = false
    /// The number of bytes in the header lines as received, including line ends.
    var fieldBytes = 0
    var isChunked = false
    /// Whether the head, and so whatever follows, can be read in two ways; nothing more is read.
    var isAmbiguous = false
    /// The status if the request is refused; the rest of the body is discarded.
    var rejection: HTTPStatus?
    /// The handler's reply to the head alone; the rest of the body is discarded too.
    var refusal: HTTPResponse?
    /// The authenticated sender of the body; `nil` for an unauthenticated one.
    var sender: String?
    /// The connection's claim while it holds a large body; it ends with the exchange.
    var claim: BodyBudget.Claim?
  }

  private enum Phase: @unchecked Sendable {  // guarded by the Mutex around it
    case receiving
    /// The handler is running, and the connection is suspended.
    case suspended(OpaquePointer)
    case answered(HTTPResponse)
    case over
  }

  private struct State {
    var phase = Phase.receiving
    /// The task that runs the handler.
    var task: Task<Void, Never>?
    /// The time since which the watchdog has found the client gone.
    var leftAt: UInt64?
  }

  /// The time in nanoseconds during which a client that has closed its side is still answered: some
  /// close only their sending side, which the system cannot distinguish.
  static let grace: UInt64 = 1_000_000_000

  let connection: Connection
  var connectionNumber: UInt64 { connection.number }
  /// The connection's thread.
  let thread = pthread_self()
  var intake: Intake
  private let state = Mutex(State())

  init(target: [UInt8], connection: Connection) {
    intake = Intake(target: target)
    self.connection = connection
  }

  /// The request as received; moves the body out of the exchange.
  func takeRequest() -> HTTPRequest {
    let body = intake.body
    intake.body = []
    return HTTPRequest(
      method: intake.method, target: HTTPTarget(bytes: intake.target), headers: intake.headers,
      body: body, remoteAddress: connection.address,
      isSecure: connection.engine.isSecure, connection: connection.number)
  }

  /// Suspends the connection until `answer(_:)`.
  ///
  /// - Returns: `false` if there is a reply already, or if `isClosing` says that the server may no
  ///   longer suspend.
  func suspend(_ handle: OpaquePointer, unless isClosing: () -> Bool) -> Bool {
    state.withLock { state in
      guard case .receiving = state.phase, !isClosing() else { return false }
      MHD_suspend_connection(handle)
      state.phase = .suspended(handle)
      return true
    }
  }

  /// Delivers the reply and wakes the connection; has no effect if there is a reply already or the
  /// connection is gone.
  func answer(_ response: HTTPResponse) {
    state.withLock { state in
      state.task = nil
      switch state.phase {
      case .receiving: state.phase = .answered(response)
      case .suspended(let handle):
        state.phase = .answered(response)
        connection.worker?.resume(handle)
      case .answered, .over: break
      }
    }
  }

  var isOver: Bool {
    state.withLock { state in
      switch state.phase {
      case .receiving, .suspended: false
      case .answered, .over: true
      }
    }
  }

  func runs(in task: Task<Void, Never>) {
    state.withLock { state in
      switch state.phase {
      case .receiving, .suspended: state.task = task
      case .answered, .over: break
      }
    }
  }

  /// Checks whether the client of a request in progress is still connected. Called by the watchdog.
  ///
  /// - Returns: Whether it has been gone for ``grace``, so that the reply is no longer wanted.
  func hasLeft(at now: UInt64) -> Bool {
    let isServed = state.withLock { state in
      if case .suspended = state.phase { true } else { false }
    }
    guard isServed, connection.isPeerGone else { return false }
    return state.withLock { state in
      let since = state.leftAt ?? now
      state.leftAt = since
      return now - since >= Self.grace
    }
  }

  /// Cancels the handler, since the reply is no longer wanted.
  func cancel() { state.withLock { $0.task }?.cancel() }

  /// Returns the handler's reply once.
  func takeAnswer() -> HTTPResponse? {
    state.withLock { state in
      guard case .answered(let response) = state.phase else { return nil }
      state.phase = .over
      return response
    }
  }

  /// Called when libmicrohttpd is done with the request.
  func end() {
    let task = state.withLock { state in
      state.phase = .over
      defer { state.task = nil }
      return state.task
    }
    task?.cancel()
  }
}
