import Synchronization

/// Lets one change of a device at a time through. Between the look at who has a device and the call of
/// the hub nobody else may come to have it.
final class DeviceLocks: Sendable {
  /// Who waits, by device; those first are next. A device that nobody changes has no entry.
  private let queues = Mutex<[String: [CheckedContinuation<Void, Never>]]>([:])

  func holding<Result>(_ id: String, _ body: () async throws -> Result) async throws -> Result {
    // Some hubs take ids that differ in letter case for one.
    let key = id.lowercased()
    await withCheckedContinuation { continuation in
      let isFree = queues.withLock { queues in
        if queues[key] == nil {
          queues[key] = []
          return true
        }
        queues[key]?.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
    defer {
      let next = queues.withLock { queues in
        guard queues[key]?.isEmpty == false else {
          queues[key] = nil
          return nil as CheckedContinuation<Void, Never>?
        }
        return queues[key]?.removeFirst()
      }
      next?.resume()
    }
    return try await body()
  }
}
