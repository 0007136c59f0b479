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

/// The side that a request came in on, HTTP/1.1 or HTTP/2; its reply goes out there.
protocol RequestOwner: AnyObject, Sendable {
  /// Of the connection, as in `HTTPRequest.connection`.
  var connectionNumber: UInt64 { get }
  /// Whether nobody waits for the reply any more, or it is there.
  var isOver: Bool { get }
  /// Hands in the reply; does nothing if there is one already or the client is gone.
  func answer(_ response: HTTPResponse)
  /// The handler runs in this task, from before its first suspension or just behind it.
  func runs(in task: Task<Void, Never>)
}

/// One request of HTTP/1.1 and its reply on a connection.
///
/// Made when the request line is known and released when libmicrohttpd reports the request
/// completed. `intake` belongs to the connection's thread. `state` is shared with the task that
/// runs the handler; suspending and resuming the connection happen under its lock, so a connection
/// is resumed exactly once, and never after its end.
// `intake`: the connection's thread; rest: Mutex
final class Exchange: RequestOwner, @unchecked Sendable {
  /// What has arrived so far.
  struct Intake {
    var target: [UInt8]
    var method = HTTPMethod.get
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    /// Body bytes seen, kept or thrown away.
    var received = 0
    var headSeen = false
    /// Bytes of the header lines as they came, their ends included.
    var fieldBytes = 0
    var isChunked = false
    /// Its head can be read in two ways, and so can what follows: nothing more is read.
    var isAmbiguous = false
    /// Set when the request is refused; the body's rest is thrown away.
    var rejection: HTTPStatus?
    /// What the handler has answered to the head alone; the same.
    var refusal: HTTPResponse?
    /// Whose the body is, by its head; `nil` is a stranger's.
    var sender: String?
    /// Counts the connection while it holds a large body; it ends with the exchange.
    var claim: BodyBudget.Claim?
  }

  private enum Phase: @unchecked Sendable {  // guarded by the Mutex around it
    case receiving
    /// The handler works; the connection is suspended.
    case suspended(OpaquePointer)
    case answered(HTTPResponse)
    case over
  }

  private struct State {
    var phase = Phase.receiving
    /// The task that handles it.
    var task: Task<Void, Never>?
    /// Since when the watchdog has seen nobody on the other side.
    var leftAt: UInt64?
  }

  /// For so long a client that has closed its side is answered as if it still read: some close only
  /// their sending side, and the system does not tell them from those that are gone.
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

  /// The request as far as it has come; takes the body out of the exchange.
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
  /// - Returns: `false` if there is an answer already, or if `isClosing` says that the server may
  ///   not suspend any more.
  func suspend(_ handle: OpaquePointer, unless isClosing: () -> Bool) -> Bool {
    state.withLock { state in
      guard case .receiving = state.phase, !isClosing() else { return false }
      MHD_suspend_connection(handle)
      state.phase = .suspended(handle)
      return true
    }
  }

  /// Hands in the reply and wakes the connection; does nothing if there is a reply already or the
  /// connection is gone.
  func answer(_ response: HTTPResponse) {
    state.withLock { state in
      state.task = nil
      switch state.phase {
      case .receiving: state.phase = .answered(response)
      case .suspended(let handle):
        state.phase = .answered(response)
        MHD_resume_connection(handle)
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

  /// Notes whether the client of a request that is being served is still there; the watchdog's.
  ///
  /// - Returns: Whether it has been gone for ``grace``, so that nobody waits for the reply.
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

  /// Nobody waits for the reply: cancels what works on it.
  func cancel() { state.withLock { $0.task }?.cancel() }

  /// The reply, once, if the handler has given it.
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
