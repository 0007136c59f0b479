package import HubCore
import SQLDatabase
import Synchronization

extension PostgresHubStore: SubjectStore {
  package var coding: RegistrationIDCoding { engine.shared.coding }

  package func reading<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectReading) throws -> Value
  ) async throws -> Value {
    try await read(call) { try body($0) }
  }

  package func polling<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any TargetReading) throws -> Value
  ) async throws -> Value {
    try await readFreely(call, as: .delivery()) { try body($0) }
  }

  package var ownRetries: String {
    """
    retry r
      JOIN work w ON w.notification = r.notification AND w.part = r.part AND w.is_done = 0
        AND w.owner = \(heartbeat.map { String($0.id) } ?? "NULL")
      JOIN notification n ON n.id = r.notification AND n.ended_at IS NULL
    """
  }

  package func writing<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectWriting) throws -> Value
  ) async throws -> Value {
    try await write(call) { try body($0) }
  }
}

extension PostgresHubStore {
  package func directoryVersion() async throws -> Int {
    let mark = engine.shared.directory
    return try await intercepted(#function) { [engine] in
      guard !engine.shared.isClosing.load(ordering: .relaxed) else { throw StoreError.closed }
      let (known, changes) = mark.known()
      if let known { return known }
      let version = try await engine.perform(.single, on: engine.readers, ifUnclear: .again) {
        session in
        Int(try session.first("SELECT version FROM directory") ?? 0)
      }
      mark.note(version, readAfter: changes)
      return version
    }
  }

  package func statistics() async -> StoreStatistics {
    var statistics = engine.shared.statistics.withLock { $0 }
    statistics.add(engine.counts)
    return statistics
  }

  package func inTurn<Value: Sendable>(
    bytes: Int, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await engine.documents.read(bytes: bytes, work)
  }

  /// The condition of the database and of this node. A fault counts until something works again. In
  /// a node the heartbeat tries, and callers do not wait for it; in another process this call
  /// tries.
  package func condition() async -> StoreCondition {
    guard !engine.shared.isClosing.load(ordering: .relaxed) else {
      return .unavailable(reason: StoreError.closed.description)
    }
    if heartbeat == nil, engine.shared.health.condition != nil {
      _ = try? await engine.perform(.single, on: engine.readers, ifUnclear: .again) { session in
        try session.first("SELECT 1")
      }
    }
    // Waiting work is refused even when no other request comes.
    do { try engine.refuseIfHung() } catch {
      return engine.shared.health.condition ?? .unavailable(reason: "\(error)")
    }
    if let fault = engine.shared.health.condition { return fault }
    return heartbeat?.trouble.map { .leaseLost(reason: $0) } ?? .healthy
  }
}
