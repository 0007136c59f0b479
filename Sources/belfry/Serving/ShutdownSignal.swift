import Foundation
import Synchronization

/// SIGTERM, SIGINT and SIGHUP as something to wait for. The first asks for an orderly end; the
/// second, for people who press Ctrl-C again, ends the process at once; and so does a thread of its
/// own once the limit is over, whatever hangs: a disk, a database, a push service. A hang-up may ask for
/// something else, as it does of daemons, unless the terminal is gone in which the process began.
///
/// A handler is in place from the first line of `main`, and passes the number on through a pipe:
/// none is lost, at whatever moment it comes. (A dispatch source reads its signals some
/// milliseconds after it is made, and what comes before that is gone.)
struct ShutdownSignal: Sendable {
  private struct State {
    /// A command ends in order when a signal comes. Until then one ends the process by itself.
    var isClaimed = false
    var received: Int32?
    var waiter: CheckedContinuation<Int32, Never>?
    /// What a hang-up asks for in place of an end.
    var hangUp: (@Sendable () -> Void)?
    /// How long an orderly end may take.
    var limit = Duration.seconds(15)
    var report: @Sendable (String) -> Void = { _ in }
    /// What the end waits for.
    var step: String?
  }

  private static let state = Mutex(State())

  /// Takes the signals from here on. The first thing that `main` does.
  static func listen() {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return }  // Then signals end the process, as without us.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    signalPipe = ends[1]
    let hadTerminal = hasTerminal
    Thread.detachNewThread { [input = ends[0]] in
      var number: UInt8 = 0
      while true {
        if read(input, &number, 1) == 1 { receive(Int32(number), hadTerminal: hadTerminal) }
      }
    }
    // `nohup` has hang-ups ignored, and that stays.
    for number in [SIGTERM, SIGINT] + (isIgnored(SIGHUP) ? [] : [SIGHUP]) {
      signal(number) { number in
        // Only what is allowed in a handler.
        let code = errno
        var byte = UInt8(truncatingIfNeeded: number)
        _ = write(signalPipe, &byte, 1)
        errno = code
      }
    }
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    #if canImport(Darwin)
      let handler = action.__sigaction_u.__sa_handler
    #else
      let handler = action.__sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// The process belongs to a terminal that is there.
  private static var hasTerminal: Bool {
    let descriptor = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    close(descriptor)
    return true
  }

  private static func receive(_ number: Int32, hadTerminal: Bool) {
    if number == SIGHUP, let hangUp = state.withLock({ $0.hangUp }),
      !hadTerminal || hasTerminal
    {
      return hangUp()
    }
    let (waiter, isFirst) = state.withLock { state in
      guard state.isClaimed, state.received == nil else {
        return (nil as CheckedContinuation<Int32, Never>?, false)
      }
      defer { state.waiter = nil }
      state.received = number
      return (state.waiter, true)
    }
    guard isFirst else { return die(of: number) }
    Thread.detachNewThread { endWhenOverdue() }
    waiter?.resume(returning: number)
  }

  /// Says what an orderly end waits for from here on, for who looks why it does not come.
  static func step(_ what: String) { state.withLock { $0.step = what } }

  private static func endWhenOverdue() -> Never {
    let (limit, report) = state.withLock { ($0.limit, $0.report) }
    Thread.sleep(forTimeInterval: limit / .seconds(1))
    let step = state.withLock { $0.step } ?? "the start"
    let words =
      "not stopped within \(limit.components.seconds) s, ended without order: waits for \(step). What "
      + "was accepted is taken up by the next start"
    // Who reads may be what hangs.
    Thread.detachNewThread { report(words) }
    Thread.sleep(forTimeInterval: 0.5)
    _exit(ExitCode.refused.rawValue)
  }

  /// Ends the process as the signal does where nobody takes it.
  static func die(of number: Int32) {
    signal(number, SIG_DFL)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, number)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    raise(number)
  }

  /// From here on the first signal no longer ends the process by itself.
  /// - Parameters:
  ///   - limit: How long after the first signal the process ends whatever happens.
  ///   - report: Hears then what it waited for.
  ///   - hangUp: Called for each SIGHUP, which then asks for no end; must return at once.
  init(
    within limit: Duration = .seconds(15), report: @escaping @Sendable (String) -> Void,
    hangUp: (@Sendable () -> Void)? = nil
  ) {
    Self.state.withLock {
      $0.isClaimed = true
      $0.limit = limit
      $0.report = report
      $0.hangUp = hangUp
    }
  }

  /// Returns with the first signal, also when it came before; waited for once.
  func wait() async -> Int32 {
    await withCheckedContinuation { continuation in
      let received = Self.state.withLock { state in
        if state.received == nil { state.waiter = continuation }
        return state.received
      }
      if let received { continuation.resume(returning: received) }
    }
  }
}

/// The end of the pipe that the handler writes to. Written once, before the handler is in place.
nonisolated(unsafe) private var signalPipe: Int32 = -1
