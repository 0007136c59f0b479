import Foundation
import Synchronization

/// SIGTERM, SIGINT and SIGHUP as an awaitable event. The first one requests an orderly shutdown;
/// the second, for people who press Ctrl-C again, ends the process at once, and so does a separate
/// thread after the time limit, whatever hangs: a disk, a database, a push service. A hang-up can
/// have another meaning, as it does for daemons, unless the terminal in which the process began is
/// gone.
///
/// A handler is installed in the first line of `main`, and passes the signal on through a pipe, so
/// that none is lost at any moment. (A dispatch source starts receiving some milliseconds after its
/// creation, and earlier signals are lost.)
struct ShutdownSignal: Sendable {
  private struct State {
    /// Whether a command handles signals with an orderly shutdown. Until then a signal ends the
    /// process.
    var isClaimed = false
    var received: Int32?
    var waiter: CheckedContinuation<Int32, Never>?
    /// The action for a hang-up in place of a shutdown.
    var hangUp: (@Sendable () -> Void)?
    /// The time limit for an orderly shutdown.
    var limit = Duration.seconds(15)
    var report: @Sendable (String) -> Void = { _ in }
    /// The step that the shutdown is waiting for.
    var step: String?
  }

  private static let state = Mutex(State())

  /// Installs the handlers. Must be called first in `main`.
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
    // With `nohup` hang-ups are ignored, which is preserved.
    for number in [SIGTERM, SIGINT] + (isIgnored(SIGHUP) ? [] : [SIGHUP]) {
      signal(number) { number in
        // Only async-signal-safe calls.
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

  /// Whether the process has a terminal that still exists.
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

  /// Records the step that the shutdown is waiting for, to report it if the shutdown hangs.
  static func step(_ what: String) { state.withLock { $0.step = what } }

  private static func endWhenOverdue() -> Never {
    let (limit, report) = state.withLock { ($0.limit, $0.report) }
    Thread.sleep(forTimeInterval: limit / .seconds(1))
    let step = state.withLock { $0.step } ?? "the start"
    let words =
      "not stopped within \(limit.components.seconds) s, ended without order: waits for \(step). What "
      + "was accepted is taken up by the next start"
    // The reader of the report may itself hang.
    Thread.detachNewThread { report(words) }
    Thread.sleep(forTimeInterval: 0.5)
    _exit(ExitCode.refused.rawValue)
  }

  /// Ends the process like the default action of the signal.
  static func die(of number: Int32) {
    signal(number, SIG_DFL)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, number)
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
    raise(number)
  }

  /// Takes over handling: the first signal no longer ends the process by itself.
  /// - Parameters:
  ///   - limit: The time after the first signal at which the process ends regardless.
  ///   - report: Called then with the step that was waited for.
  ///   - hangUp: Called for each SIGHUP, which then requests no shutdown; must return at once.
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

  /// Returns with the first signal, even if it was received before; may be awaited once.
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

/// The end of the pipe that the handler writes to. Set once, before the handler is installed.
nonisolated(unsafe) private var signalPipe: Int32 = -1
