import HTTP2
import Synchronization
import Wire

/// One HTTP/2 request with its reply: a stream of a connection.
///
/// Created when the request's head has arrived, and released when the stream is closed. `intake`
/// belongs to the connection's loop until the request is submitted.
final class StreamExchange: RequestOwner, @unchecked Sendable {  // `intake`: the loop; rest: Mutex
  /// The time in nanoseconds that a reset stream, or a connection sent GOAWAY, may take to close.
  static let grace: UInt64 = 1_000_000_000
  /// The error code CANCEL of RST_STREAM.
  private static let cancel: UInt32 = 8

  /// The parts received so far.
  private struct Intake {
    var method = HTTPMethod.get
    var target = HTTPTarget(bytes: [])
    var headers = HTTPHeaders()
    var body: [UInt8] = []
  }

  private struct State {
    var isAnswered = false
    var isOver = false
    /// Whether the request is counted among those being served.
    var isServed = false
    var isReset = false
    var task: Task<Void, Never>?
    var stream: BodyChannel?
  }

  let number: Int32
  private let connection: Connection
  private let link: HTTP2ServerConnection
  private var intake = Intake()
  private(set) var expectsContinue = false
  private let isHead = Atomic<Bool>(false)
  /// The clock time in nanoseconds at which the stream is reset; `.max` while nothing is expected
  /// of the client.
  private let deadline: Atomic<UInt64>
  private let state = Mutex(State())

  init(
    _ number: Int32, _ connection: Connection, _ link: HTTP2ServerConnection,
    until deadline: UInt64
  ) {
    self.number = number
    self.connection = connection
    self.link = link
    self.deadline = Atomic(deadline)
  }

  // MARK: the request

  /// Reads the head.
  ///
  /// - Returns: The status if the request is refused without its body.
  func readHead(of request: HTTP2ServerRequest) -> HTTPStatus? {
    let pseudo = request.pseudoFields
    let method = HTTPMethod(rawValue: request.method)
    let path = Array(pseudo.firstBytes(":path") ?? [])
    isHead.store(method == .head, ordering: .relaxed)
    intake.method = method
    intake.target = HTTPTarget(bytes: path)
    let isWhole = readFields(request)
    if request.excess == .header { return .headerFieldsTooLarge }
    let isTarget = path.first == ASCII.slash || (path == Array("*".utf8) && method == .options)
    guard isWhole, isTarget, path.allSatisfy({ $0 > ASCII.blank && $0 != 127 }) else {
      return .badRequest
    }
    let limits = connection.engine.configuration
    if intake.headers.storage.count + path.count > limits.maxHeaderBytes {
      return .headerFieldsTooLarge
    }
    if let announced = intake.headers.bytes("Content-Length") {
      // nghttp2 has parsed it as a number; one that `Int` cannot hold is too large.
      let length = Int(String(decoding: announced, as: UTF8.self)) ?? Int.max
      if length > limits.maxBodyBytes { return .contentTooLarge }
    }
    expectsContinue =
      intake.headers.bytes("Expect").map { $0.isEqualIgnoringCase("100-continue".utf8) } ?? false
    return nil
  }

  /// - Returns: Whether the authority is unambiguous.
  private func readFields(_ request: HTTP2ServerRequest) -> Bool {
    let fields = request.fields
    var headers = HTTPHeaders()
    headers.reserve(fields: fields.count + 1, bytes: 768)
    let authority = request.pseudoFields.firstBytes(":authority")
    let host = fields.firstBytes("host")
    if let authority { headers.add(name: "Host", value: authority) }
    var cookies: [ArraySlice<UInt8>] = []
    for index in 0..<fields.count {
      let name = fields.name(at: index)
      if name.elementsEqual("host".utf8), authority != nil { continue }
      if name.elementsEqual("cookie".utf8) {
        cookies.append(fields.value(at: index))
        continue
      }
      name.withUnsafeBytes { name in
        fields.value(at: index).withUnsafeBytes { headers.add(name: name, value: $0) }
      }
    }
    // A client may send each cookie as a separate field (RFC 9113, section 8.2.3).
    if !cookies.isEmpty {
      headers.add(name: "cookie", value: Array(cookies.joined(separator: Array("; ".utf8)))[...])
    }
    intake.headers = headers
    guard let authority else { return host.map { !$0.isEmpty } ?? false }
    return !authority.isEmpty && (host == nil || host.map { $0.elementsEqual(authority) } == true)
  }

  /// Called when the request is complete.
  func isComplete(body: [UInt8]) {
    intake.body = body
    deadline.store(.max, ordering: .relaxed)
    state.withLock { $0.isServed = true }
  }

  func takeRequest() -> HTTPRequest {
    defer { intake.body = [] }
    return HTTPRequest(
      method: intake.method, target: intake.target, headers: intake.headers, body: intake.body,
      remoteAddress: connection.address, isSecure: true, connection: connection.number)
  }

  // MARK: the reply

  var connectionNumber: UInt64 { connection.number }

  var isOver: Bool { state.withLock { $0.isOver || $0.isAnswered } }

  func runs(in task: Task<Void, Never>) {
    let isOver = state.withLock { state in
      if !state.isAnswered { state.task = task }
      return state.isOver
    }
    if isOver { task.cancel() }
  }

  func answer(_ response: HTTPResponse) {
    let isFirst = state.withLock { state in
      defer {
        state.isAnswered = true
        state.task = nil
      }
      return !state.isAnswered && !state.isOver
    }
    guard isFirst else { return }
    let engine = connection.engine
    var reply = HTTP2ServerResponse(
      status: response.status.rawValue, fields: engine.fields(of: response.headers))
    let isHead = isHead.load(ordering: .relaxed)
    let carriesNone = response.status == .noContent || response.status == .notModified
    switch response.body {
    case .cut(.reset): return link.abort()
    case .cut(.close): return link.close()
    case .stream(let body) where !isHead: return stream(body, reply)
    case .stream: break
    case .none:
      if !carriesNone { reply.fields.append("content-length", "0") }
    case .bytes(let bytes):
      if isHead || bytes.isEmpty {
        if !carriesNone { reply.fields.append("content-length", "\(bytes.count)") }
      } else if !carriesNone {
        reply.body = bytes
      }
    }
    deadline.store(engine.deadline(engine.configuration.responseWriteTimeout), ordering: .relaxed)
    link.respond(reply, to: number)
  }

  private func stream(
    _ body: @escaping @Sendable (HTTPBodyWriter) async throws -> Void, _ reply: HTTP2ServerResponse
  ) {
    let engine = connection.engine
    let sleeper = BodyChannel.Sleeper(sleep: {}, wake: { [link, number] in link.resume(number) })
    let channel = BodyChannel(sleeper) { engine.deadline(engine.configuration.streamStallTimeout) }
    let isOver = state.withLock { state in
      state.stream = channel
      return state.isOver
    }
    guard !isOver else { return channel.release() }
    deadline.store(.max, ordering: .relaxed)
    var reply = reply
    reply.source = channel
    link.respond(reply, to: number)
    channel.start(body)
    // `stop` checks the streams after setting the phase, so one of the two sees the other.
    if engine.phase.load(ordering: .sequentiallyConsistent) != .running { channel.fail(.stopping) }
  }

  /// Ends a streamed reply in an orderly way.
  func stopStreaming() { state.withLock { $0.stream }?.fail(.stopping) }

  // MARK: the end

  /// Resets the stream if its client has exceeded a time limit.
  ///
  /// - Returns: Whether even the reset does not reach the client.
  func watch(at now: UInt64) -> Bool {
    let (stream, isReset) = state.withLock { ($0.stream, $0.isReset) }
    if let stream, !isReset, stream.isStalled(at: now) {
      stream.fail(.stalled)
    } else if deadline.load(ordering: .relaxed) > now {
      return false
    } else if isReset {
      return true
    }
    state.withLock { $0.isReset = true }
    deadline.store(now + Self.grace, ordering: .relaxed)
    link.reset(number, code: Self.cancel)
    return false
  }

  /// Called when the stream is closed: cancels the work for it.
  ///
  /// - Returns: Whether the request was counted among those being served.
  func end() -> Bool {
    let (task, stream, isServed) = state.withLock { state in
      defer {
        state.isOver = true
        state.task = nil
        state.stream = nil
      }
      return (state.task, state.stream, state.isServed)
    }
    task?.cancel()
    stream?.release()
    return isServed
  }
}

extension Engine {
  /// A reply's headers with the date in HTTP/2 form, which has no fields about the connection (RFC
  /// 9113, section 8.2.2).
  func fields(of headers: HTTPHeaders) -> HTTP2FieldList {
    var fields = HTTP2FieldList()
    if !headers.contains("Date") { fields.append("date", date.now) }
    headers.withFields { name, value, nameSize, valueSize in
      let name = UnsafeRawBufferPointer(start: name, count: nameSize)
      guard !Self.connectionFields.contains(where: { name.isEqualIgnoringCase($0.utf8) })
      else {
        return
      }
      fields.append(
        name: name.map(\.foldedCapital),
        value: UnsafeRawBufferPointer(start: value, count: valueSize))
    }
    return fields
  }

  private static let connectionFields = [
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade",
  ]
}
