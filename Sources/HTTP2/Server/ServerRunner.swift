import CNghttp2
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// One thread of a server and the sessions on it. Used on that thread only.
final class ServerRunner {
  static let inputSize = 64 * 1024
  private static let sweepInterval: UInt64 = 1_000_000_000

  let core: ServerCore
  let loop: ServerLoop
  let input = UnsafeMutableRawPointer.allocate(byteCount: inputSize, alignment: 64)
  /// The clock, read once per turn of the loop.
  private(set) var now: UInt64
  private let index: Int
  private var sessions: [ServerSession] = []
  /// Sessions with pending output or an end to process, each once.
  private var dirty: [ServerSession] = []
  private var lastSweep: UInt64 = 0
  /// Time until which nothing is accepted because descriptors are exhausted; connects wait in the
  /// system's queue.
  private var acceptPausedUntil: UInt64 = 0
  private var nextLoop = 0
  private var nextID: UInt64 = 1
  private var descriptors: [pollfd] = []

  init(_ core: ServerCore, _ index: Int) {
    self.core = core
    self.index = index
    loop = core.loops[index]
    now = core.configuration.monotonicClock()
  }

  deinit { input.deallocate() }

  /// The body of a loop's thread.
  static func run(_ core: ServerCore, _ index: Int) {
    blockBrokenPipeSignal()
    let runner = ServerRunner(core, index)
    runner.loop.enter()
    while runner.turn() {}
    for session in runner.sessions { session.end(isReset: false) }
    if index == 0 { core.closeListeners() }
    runner.loop.leave()
    // Connections accepted for a loop that has just stopped.
    for accepted in runner.loop.collect().accepted { core.drop(accepted) }
    core.loopEnded()
  }

  /// Notes that a session needs a pump before the loop sleeps.
  func markDirty(_ session: ServerSession) { dirty.append(session) }

  /// One turn of the loop; false when the server stops.
  private func turn() -> Bool {
    let mail = loop.collect()
    guard !mail.isStopping else { return false }
    if index == 0 { core.closeUnusedListeners() }
    for accepted in mail.accepted { adopt(accepted) }
    for (connection, command) in mail.commands { connection.session?.apply(command) }
    pumpDirty()
    sweep()

    let isPaused = now < acceptPausedUntil
    let listener = index == 0 && !isPaused ? core.listener : nil
    fillDescriptors(listener)
    let isHungry = sessions.contains(where: \.hasMoreInput)
    let timeout: Int32 = isHungry ? 0 : isPaused ? 100 : sessions.isEmpty ? -1 : 1000
    let ready = poll(&descriptors, nfds_t(descriptors.count), timeout)
    now = core.configuration.monotonicClock()
    guard ready > 0 || isHungry else { return true }
    if descriptors[0].revents != 0 { loop.pipe.drain() }
    for position in sessions.indices {
      let events = Int32(descriptors[position + 2].revents)
      if events != 0 || sessions[position].hasMoreInput { sessions[position].wake(events: events) }
    }
    if let listener, descriptors[1].revents != 0 { acceptAll(listener) }
    pumpDirty()
    return true
  }

  private func fillDescriptors(_ listener: Int32?) {
    descriptors.removeAll(keepingCapacity: true)
    descriptors.append(pollfd(fd: loop.pipe.readEnd, events: Int16(POLLIN), revents: 0))
    // A negative descriptor is skipped by `poll`.
    descriptors.append(pollfd(fd: listener ?? -1, events: Int16(POLLIN), revents: 0))
    for session in sessions {
      descriptors.append(pollfd(fd: session.descriptor, events: session.events, revents: 0))
    }
  }

  private func pumpDirty() {
    while !dirty.isEmpty {
      let batch = dirty
      dirty.removeAll(keepingCapacity: true)
      for session in batch { session.pump() }
    }
    if sessions.contains(where: \.isEnded) { sessions.removeAll(where: \.isEnded) }
  }

  /// Ends the sessions that have timed out; once a second is often enough.
  private func sweep() {
    guard now >= lastSweep + Self.sweepInterval else { return }
    lastSweep = now
    for session in sessions { session.watchClocks(now) }
    pumpDirty()
  }

  private func acceptAll(_ listener: Int32) {
    // Bounded, so that a flood of connects does not starve the open connections.
    for _ in 0..<64 {
      guard let (descriptor, peer) = Socket.accept(listener) else {
        if errno == EMFILE || errno == ENFILE { acceptPausedUntil = now + 100_000_000 }
        return
      }
      let count = core.socketCount.add(1, ordering: .relaxed).newValue
      let id = nextID
      nextID += 1
      let decision: HTTP2AcceptDecision =
        count > core.configuration.maxConnections
        ? .close : core.handler.connectionAccepted(id: id)
      switch decision {
      case .reset, .close:
        if decision == .reset { Socket.setReset(descriptor) }
        Socket.close(descriptor)
        core.socketCount.subtract(1, ordering: .relaxed)
      case .proceed, .stall, .alert:
        let accepted = ServerLoop.Accepted(
          id: id, descriptor: descriptor, peer: peer, decision: decision, isAdopted: false)
        nextLoop = (nextLoop + 1) % core.loops.count
        if nextLoop == index {
          adopt(accepted)
        } else if !core.loops[nextLoop].take(accepted) {
          core.drop(accepted)
        }
      }
    }
  }

  private func adopt(_ accepted: ServerLoop.Accepted) {
    guard let session = ServerSession(self, accepted) else {
      core.drop(accepted)
      return
    }
    sessions.append(session)
  }
}

/// The mailbox of one server thread: commands from any thread to its connections.
final class ServerLoop: Sendable {
  enum Command: Sendable {
    case respond(HTTP2ServerResponse, Int32)
    case sendContinue(Int32)
    case resume(Int32)
    case reset(Int32, UInt32)
    /// Stream limit, initial window.
    case settings(Int?, Int?)
    /// Last stream, code, debug data.
    case goAway(Int32, UInt32, [UInt8])
    case shutDown
    case abort
    case close
    case stall
  }

  struct Accepted: Sendable {
    let id: UInt64
    /// Owned by the holder of this value.
    let descriptor: Int32
    let peer: String
    let decision: HTTP2AcceptDecision
    /// Whether the handler is notified of its end.
    let isAdopted: Bool
  }

  struct Mail: Sendable {
    var accepted: [Accepted] = []
    var commands: [(HTTP2ServerConnection, Command)] = []
    var isStopping = false
  }

  let pipe: WakePipe
  private let mail = Mutex(Mail())
  /// The loop's thread while it runs, else 0.
  private let thread = Atomic<UInt>(0)

  init(_ pipe: WakePipe) { self.pipe = pipe }

  var isCurrent: Bool { thread.load(ordering: .relaxed) == currentThreadNumber() }

  func perform(_ command: Command, on connection: HTTP2ServerConnection) {
    if isCurrent {
      connection.session?.apply(command)
    } else {
      post { $0.commands.append((connection, command)) }
    }
  }

  func post(_ change: (inout Mail) -> Void) {
    mail.withLock { change(&$0) }
    pipe.wake()
  }

  /// Takes a connection over, unless the loop is stopping.
  func take(_ accepted: Accepted) -> Bool {
    let isTaken = mail.withLock { mail in
      if !mail.isStopping { mail.accepted.append(accepted) }
      return !mail.isStopping
    }
    if isTaken { pipe.wake() }
    return isTaken
  }

  // MARK: The thread's side

  func enter() { thread.store(currentThreadNumber(), ordering: .relaxed) }
  func leave() { thread.store(0, ordering: .relaxed) }

  func collect() -> Mail {
    mail.withLock { mail in
      defer {
        mail.accepted = []
        mail.commands = []
      }
      return mail
    }
  }
}

/// A server's session without socket and TLS, for the fuzz target: it takes the client's bytes and
/// returns the server's. For one thread.
final class DetachedServerSession {
  private let runner: ServerRunner
  let session: ServerSession

  /// Nil when TLS cannot be set up.
  init?(_ core: ServerCore) {
    runner = ServerRunner(core, 0)
    let accepted = ServerLoop.Accepted(
      id: 1, descriptor: -1, peer: "", decision: .proceed, isAdopted: true)
    guard let session = ServerSession(runner, accepted) else { return nil }
    self.session = session
    // Replies of the handler are applied at once.
    runner.loop.enter()
    session.open(peerCertificate: nil)
  }

  deinit {
    session.end(isReset: false)
    runner.loop.leave()
  }

  /// Whether the server would close the connection after what it has sent.
  var isOver: Bool {
    session.isDeaf
      || nghttp2_session_want_read(session.session) == 0
        && nghttp2_session_want_write(session.session) == 0
  }

  /// Takes bytes and returns the server's frames.
  func exchange(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    bytes.withUnsafeBytes { if !session.isDeaf, !$0.isEmpty { session.read($0) } }
    var sent: [UInt8] = []
    while session.output.gather(from: session.session), !session.output.isEmpty {
      sent += session.output.take()
    }
    return sent
  }
}
