import Synchronization

/// The mailbox of one server thread: what any thread may ask of the connections on it.
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
    /// Whether the handler hears of its end.
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
