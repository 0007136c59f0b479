import Foundation
import Synchronization

#if canImport(Glibc)
  import Glibc
  private let stream = Int32(SOCK_STREAM.rawValue)
  private let sending = Int32(MSG_NOSIGNAL)
#elseif canImport(Musl)
  import Musl
  private let stream = SOCK_STREAM
  private let sending = Int32(MSG_NOSIGNAL)
#elseif canImport(Darwin)
  import Darwin
  private let stream = SOCK_STREAM
  private let sending: Int32 = 0
#endif

/// A relay before a ``PostgresServer`` that reads what passes, names every statement that runs, and
/// breaks the connection of one of them: before it reaches the server, or once it has run there.
///
/// It speaks as much of the protocol as that needs: the frames, and which answer ends which
/// statement. Preparing a statement (Parse) is not one; its execution is.
/// - SeeAlso: <https://www.postgresql.org/docs/current/protocol-message-formats.html>
package final class PostgresProxy: Sendable {
  /// A statement that a client has sent to be run.
  package struct Sent: Hashable, Sendable {
    /// The call of the test that sent it; see ``PostgresProxy/call``.
    package let call: String
    /// With single spaces, and without long numbers.
    package let text: String
  }

  /// A fault of one statement.
  package enum Fault: String, CaseIterable, Sendable {
    /// It does not reach the server; both sides are closed.
    case cutBefore
    /// It runs, its answer is lost, and both sides are closed.
    case cutAfter
    /// It does not reach the server, and nothing passes until the client gives up.
    case hangBefore
    /// It runs, and nothing passes any more until the client gives up.
    case hangAfter
    /// It runs, its answer is lost, and nobody reaches the server until ``PostgresProxy/heal()``.
    case outage

    package var isHang: Bool { self == .hangBefore || self == .hangAfter }
    fileprivate var isBefore: Bool { self == .cutBefore || self == .hangBefore }
  }

  private struct State {
    var call = ""
    var sent: [Sent] = []
    var isRecording = false
    var fault: (fault: Fault, matches: @Sendable (Sent) -> Bool)?
    var hasStruck = false
    var isDown = false
    var longestHang = Duration.zero
    var isStopping = false
  }

  private let state = Mutex(State())
  private let directory: TemporaryDirectory
  /// Written to when the loop is to look at ``State/isStopping``.
  private let wake: Int32

  /// After so long a hanging connection is closed from here, so that a test ends.
  package static let hangLimit = Duration.seconds(30)

  package init(before server: PostgresServer) throws {
    directory = try TemporaryDirectory()
    let name = "/.s.PGSQL.5432"
    let listener = socket(AF_UNIX, stream, 0)
    var ends: [Int32] = [0, 0]
    guard listener >= 0, pipe(&ends) == 0,
      Self.call(bind, listener, directory.url.path + name) == 0, listen(listener, 128) == 0
    else {
      throw PostgresServer.Fault(description: "no socket: \(String(cString: strerror(errno)))")
    }
    wake = ends[1]
    let (end, target) = (ends[0], server.socketDirectory + name)
    Thread.detachNewThread { [self] in
      Loop(listener: listener, wake: end, target: target).run(self)
    }
  }

  /// The address of a database of its server, through it.
  /// - Parameter address: As the server gives it.
  package func address(of address: String) -> String {
    // The last of two counts.
    "\(address) host='\(directory.url.path)'"
  }

  package func stop() {
    state.withLock { $0.isStopping = true }
    // The other end may just have been closed.
    signal(SIGPIPE, SIG_IGN)
    var byte: UInt8 = 0
    _ = write(wake, &byte, 1)
  }

  /// The current call of the test: statements that come from here on are noted under it.
  package var call: String {
    get { state.withLock { $0.call } }
    set { state.withLock { $0.call = newValue } }
  }

  /// Notes the statements from here on.
  package func record() { state.withLock { $0.isRecording = true } }

  package var sent: [Sent] { state.withLock { $0.sent } }

  /// The first statement from here on that fits has this fault.
  package func arm(_ fault: Fault, at matches: @escaping @Sendable (Sent) -> Bool) {
    state.withLock { state in
      state.fault = (fault, matches)
      state.hasStruck = false
    }
  }

  /// The server is reached again.
  package func heal() { state.withLock { $0.isDown = false } }

  package var hasStruck: Bool { state.withLock { $0.hasStruck } }

  /// For how long a client has waited for an answer that never came.
  package var longestHang: Duration { state.withLock { $0.longestHang } }

  // MARK: The loop

  fileprivate var isStopping: Bool { state.withLock { $0.isStopping } }

  fileprivate var isDown: Bool { state.withLock { $0.isDown } }

  fileprivate func breakDown() { state.withLock { $0.isDown = true } }

  fileprivate func removeDirectory() { directory.remove() }

  fileprivate func noteHang(since start: ContinuousClock.Instant) {
    state.withLock { $0.longestHang = max($0.longestHang, .now - start) }
  }

  /// - Returns: What is to go wrong with a statement.
  fileprivate func note(_ text: String) -> Fault? {
    state.withLock { state in
      guard state.isRecording || state.fault != nil else { return nil }
      let sent = Sent(call: state.call, text: Self.normal(text))
      if state.isRecording { state.sent.append(sent) }
      guard let (fault, matches) = state.fault, matches(sent) else { return nil }
      state.fault = nil
      state.hasStruck = true
      return fault
    }
  }

  private static func normal(_ text: String) -> String {
    known.withLock { known in
      if let normal = known[text] { return normal }
      let normal = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        .replacing(/[0-9]{5,}/, with: "#")
      known[text] = normal
      return normal
    }
  }

  /// Each text comes in every run.
  private static let known = Mutex<[String: String]>([:])

  fileprivate static func call(
    _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ socket: Int32, _ path: String
  ) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(100)) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}

/// The state of a proxy's thread; no other thread touches it.
private final class Loop {
  private let listener: Int32
  private let wake: Int32
  private let target: String
  private var links: [Link] = []

  init(listener: Int32, wake: Int32, target: String) {
    (self.listener, self.wake, self.target) = (listener, wake, target)
  }

  func run(_ proxy: PostgresProxy) {
    while !proxy.isStopping {
      var polled = [
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
        pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
      ]
      for link in links { polled += link.polled }
      // The second is for hangs that nobody gives up.
      guard poll(&polled, nfds_t(polled.count), 1_000) >= 0 || errno == EINTR else { break }
      for (index, link) in links.enumerated() {
        link.work(
          client: polled[2 + 2 * index].revents, server: polled[3 + 2 * index].revents, proxy)
      }
      if proxy.isDown { for link in links { link.close() } }
      links.removeAll { $0.isClosed }
      if polled[0].revents != 0 { acceptOne(isDown: proxy.isDown) }
    }
    for link in links { link.close() }
    for file in [listener, wake] { _ = Foundation.close(file) }
    proxy.removeDirectory()
  }

  private func acceptOne(isDown: Bool) {
    let client = accept(listener, nil, nil)
    guard client >= 0 else { return }
    let server = socket(AF_UNIX, stream, 0)
    guard !isDown, PostgresProxy.call(connect, server, target) == 0 else {
      _ = Foundation.close(client)
      _ = Foundation.close(server)
      return
    }
    for end in [client, server] {
      _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK)
      // A process that another test starts must not hold it open.
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
    }
    links.append(Link(client: client, server: server))
  }
}

/// A client's connection, and its own to the server.
private final class Link {
  /// A message whose answer is still to come.
  private struct Pending {
    enum Kind { case execution, query, sync }
    let kind: Kind
    /// Its answer is lost.
    var isLost = false
    /// With its answer the fault comes.
    var isLast = false
  }

  private enum Phase {
    case passing
    /// The statement with the fault has gone to the server; whether its transaction ends with it is
    /// told by what follows.
    case sent(PostgresProxy.Fault)
    /// Its answer is waited for.
    case waiting(PostgresProxy.Fault)
    case hanging(since: ContinuousClock.Instant)
    case closed
  }

  private let client: Int32
  private let server: Int32
  private var fromClient: [UInt8] = []
  private var fromServer: [UInt8] = []
  private var toClient: [UInt8] = []
  private var toServer: [UInt8] = []
  /// The first message of a client has no type.
  private var hasStarted = false
  private var texts: [String: String] = [:]
  private var bound = ""
  private var pending: [Pending] = []
  private var phase = Phase.passing

  init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

  var isClosed: Bool { if case .closed = phase { true } else { false } }
  private var isHanging: Bool { if case .hanging = phase { true } else { false } }

  func close() {
    guard !isClosed else { return }
    phase = .closed
    _ = Foundation.close(client)
    _ = Foundation.close(server)
  }

  var polled: [pollfd] {
    func events(_ waiting: [UInt8]) -> Int16 { Int16(POLLIN | (waiting.isEmpty ? 0 : POLLOUT)) }
    return [
      pollfd(fd: client, events: events(toClient), revents: 0),
      // Nobody asks a server any more whose client hangs; poll passes over what is below zero.
      pollfd(fd: isHanging ? -1 : server, events: events(toServer), revents: 0),
    ]
  }

  func work(client: Int16, server: Int16, _ proxy: PostgresProxy) {
    if case .hanging(let since) = phase {
      proxy.noteHang(since: since)
      var ignored: [UInt8] = []
      if client != 0, !Self.read(self.client, into: &ignored) { close() }
      if .now - since > PostgresProxy.hangLimit { close() }
      return
    }
    let isOpen =
      (client == 0 || Self.read(self.client, into: &fromClient))
      && (server == 0 || Self.read(self.server, into: &fromServer))
    while let message = Self.message(in: &fromServer, hasType: true) { answer(message, proxy) }
    while let message = Self.message(in: &fromClient, hasType: hasStarted) {
      ask(message, proxy)
    }
    guard !isClosed, !isHanging else { return }
    Self.write(&toServer, to: self.server)
    Self.write(&toClient, to: self.client)
    if !isOpen { close() }
  }

  /// - Returns: The next message, if all of it has come.
  private static func message(in buffer: inout [UInt8], hasType: Bool) -> [UInt8]? {
    let head = hasType ? 1 : 0
    guard buffer.count >= head + 4 else { return nil }
    let length = buffer[head..<head + 4].reduce(0) { $0 << 8 | Int($1) }
    guard buffer.count >= head + length else { return nil }
    defer { buffer.removeFirst(head + length) }
    return Array(buffer[..<(head + length)])
  }

  /// The first two texts of a message, each of which ends with a zero.
  private static func texts(of message: [UInt8]) -> (first: String, second: String) {
    // A zero more, where there is only one.
    (message + [0]).withUnsafeBufferPointer { bytes in
      guard let start = bytes.baseAddress else { return ("", "") }
      let first = String(cString: start + 5)
      return (first, String(cString: start + min(6 + first.utf8.count, message.count)))
    }
  }

  // MARK: From the client

  private func ask(_ message: [UInt8], _ proxy: PostgresProxy) {
    guard hasStarted else {
      hasStarted = true
      toServer += message
      return
    }
    let type = Character(Unicode.Scalar(message[0]))
    switch phase {
    case .hanging, .closed, .waiting: return
    case .sent(let fault):
      phase = .waiting(fault)
      if type == "S" {
        // Without a transaction around it, it is done with this.
        pending.append(Pending(kind: .sync, isLost: true, isLast: true))
        toServer += message
      } else {
        // More follows that is not to run: the server answers what it has.
        if let last = pending.indices.last { pending[last].isLast = true }
        toServer += [UInt8(ascii: "H"), 0, 0, 0, 4]
      }
      return
    case .passing: break
    }
    switch type {
    case "P":
      let (name, text) = Self.texts(of: message)
      texts[name] = text
    case "B": bound = texts[Self.texts(of: message).second] ?? ""
    case "S": pending.append(Pending(kind: .sync))
    case "E", "Q":
      let isQuery = type == "Q"
      let fault = proxy.note(isQuery ? Self.texts(of: message).first : bound)
      if let fault, fault.isBefore { return strike(fault, proxy) }
      pending.append(
        Pending(kind: isQuery ? .query : .execution, isLost: fault != nil))
      if let fault {
        phase = isQuery ? .waiting(fault) : .sent(fault)
        if isQuery { pending[pending.count - 1].isLast = true }
      }
    default: break
    }
    toServer += message
  }

  private func strike(_ fault: PostgresProxy.Fault, _ proxy: PostgresProxy) {
    if fault == .outage { proxy.breakDown() }
    if fault.isHang { phase = .hanging(since: .now) } else { close() }
  }

  // MARK: From the server

  private func answer(_ message: [UInt8], _ proxy: PostgresProxy) {
    guard !isClosed, !isHanging else { return }
    if pending.first?.isLost != true { toClient += message }
    var done: [Pending] = []
    switch Character(Unicode.Scalar(message[0])) {
    // Complete, empty, suspended.
    case "C", "I", "s":
      if pending.first?.kind == .execution { done = [pending.removeFirst()] }
    case "E":
      // The server skips the messages behind it until the next Sync.
      while pending.first?.kind == .execution { done.append(pending.removeFirst()) }
    case "Z":
      while let first = pending.first {
        done.append(pending.removeFirst())
        if first.kind != .execution { break }
      }
    default: break
    }
    if case .waiting(let fault) = phase, done.contains(where: \.isLast) {
      strike(fault, proxy)
    }
  }

  // MARK: Bytes

  /// - Returns: `false` at the end of the connection.
  private static func read(_ file: Int32, into buffer: inout [UInt8]) -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(file, &chunk, chunk.count, 0)
      guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
      buffer += chunk[..<count]
    }
  }

  private static func write(_ buffer: inout [UInt8], to file: Int32) {
    while !buffer.isEmpty {
      let count = send(file, buffer, buffer.count, sending)
      // The rest goes with the next round; reading notices a closed connection.
      guard count > 0 else { return }
      buffer.removeFirst(count)
    }
  }
}
