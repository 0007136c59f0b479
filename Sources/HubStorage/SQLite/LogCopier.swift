import SQLDatabase
import Synchronization

/// Keeps the write-ahead log short without blocking writers: a thread of its own, with its own
/// connection, copies most of it into the database file; the writing thread then copies the rest,
/// after which its next write starts the log again.
final class LogCopier: Sendable {
  private enum State {
    case idle
    case copying
    /// The thread has copied this many pages.
    case copied(Int)
  }

  private final class Request: QueuedJob, @unchecked Sendable {}  // adds no state

  private let queue = JobQueue<Request>()
  private let state = Mutex(State.idle)
  /// Number of pages in the log from which it is copied.
  private let pages: Int

  init(pages: Int) { self.pages = pages }

  func start(_ open: @escaping @Sendable () throws -> SQLiteConnection) async throws {
    try await queue.startThread(
      named: "hub store log", batch: 1, open: open,
      work: { _, connection in
        // A failed copy is retried when the log has grown.
        let copied = (try? connection.copyLog())?.copied ?? 0
        self.state.withLock { $0 = .copied(copied) }
      },
      end: { $0.close() })
  }

  /// Called by the writing thread after each commit.
  func follow(_ connection: SQLiteConnection) {
    let length = connection.logPageCount
    let state = state.withLock { $0 }
    switch state {
    case .copying: return
    case .idle where length < pages: return
    case .copied where length < pages: become(.idle)
    case .idle: copy()
    case .copied(let copied):
      // With much left the thread copies again, unless it cannot keep up at all.
      if length - copied > pages / 4 && length < pages * 4 {
        copy()
      } else {
        become(.idle)
        _ = try? connection.copyLog()
      }
    }
  }

  private func become(_ new: State) { state.withLock { $0 = new } }

  private func copy() {
    become(.copying)
    if !queue.add(Request()) { become(.idle) }
  }

  func close() async { await queue.close() }
  func closeWithoutWaiting() { queue.closeWithoutWaiting() }
}
