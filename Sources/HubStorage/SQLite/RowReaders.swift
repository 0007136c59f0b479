import HubCore
import SQLDatabase
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Connections for reads of a few rows that are found by their key, on the caller's thread.
///
/// Such a read takes less time than passing it to another thread and back. Nothing is waited for by
/// which a caller could hold up the thread for others: another process's lock, the decoding of a large
/// document, or, but for some microseconds, a connection that is in use.
final class RowReaders: Sendable {
  /// Thrown by a read that would take long here: of a document of more than ``mostBytes``, or after
  /// another process has written, when the log of keys has to be read again.
  struct TakesLong: Error {}

  /// The maximum size in bytes of a document, with the templates that it names, that is decoded on a
  /// caller's thread.
  static let mostBytes = 16 * 1024

  private let sessions: [Session]
  private let health: StoreHealth

  /// A session that is used or left, never waited for in the kernel: `Mutex` asks the kernel each
  /// time that it finds itself locked, and a wait here is mostly shorter than that.
  private final class Session: @unchecked Sendable {
    private let isInUse = Atomic(false)
    // `isInUse` guards it. `nil` once closed.
    private var session: ReadSession?

    init(_ session: sending ReadSession) { self.session = session }

    /// - Returns: `nil` if the session is in use.
    func useIfFree<Value>(_ body: (inout ReadSession?) -> Value) -> Value? {
      guard !isInUse.load(ordering: .relaxed),
        !isInUse.exchange(true, ordering: .acquiring)
      else { return nil }
      defer { isInUse.store(false, ordering: .releasing) }
      return body(&session)
    }
  }

  init(count: Int, health: StoreHealth, open: () throws -> sending ReadSession) throws {
    self.health = health
    var sessions: [Session] = []
    for _ in 1...max(1, count) { sessions.append(Session(try open())) }
    self.sessions = sessions
  }

  /// Time for which a connection in use is tried again: some reads take that long, and passing a read
  /// to another thread costs more. First without letting other threads of this core go on.
  private static let patience = (
    spin: Duration.microseconds(8), total: Duration.microseconds(20)
  )

  /// Runs `body` in a transaction.
  ///
  /// - Returns: `nil` if it has to be done on another thread, or the readers are closed.
  func read<Value: Sendable>(_ body: @Sendable (ReadSession) throws -> Value) throws -> Value? {
    var start: ContinuousClock.Instant?
    while true {
      for session in sessions {
        let result = session.useIfFree { session -> Result<Value?, any Error> in
          guard let session else { return .success(nil) }
          return Result { try session.connection.reading { try body(session) } }
        }
        switch result {
        case .success(let value): return value
        case .failure(is TakesLong): return nil
        case .failure(let error as SQLError) where error.kind == .locked: return nil
        case .failure(let error):
          health.readFailed(error)
          throw StoreError.orRefusal(error)
        case nil: continue
        }
      }
      let now = ContinuousClock.now
      let begin = start ?? now
      start = begin
      if now - begin > Self.patience.total { return nil }
      if now - begin > Self.patience.spin { sched_yield() }
    }
  }

  func close() {
    for session in sessions {
      while session.useIfFree({ session -> Void in
        session?.connection.close()
        session = nil
      }) == nil {
        // The read under way ends, and none begins on a closed session.
        usleep(1_000)
      }
    }
  }
}
