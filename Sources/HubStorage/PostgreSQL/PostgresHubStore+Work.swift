package import Foundation
package import HubCore
import NotificationHubs
import SQLDatabase

/// Undelivered work, and the nodes that own it.
extension PostgresHubStore {
  package var isShared: Bool { true }

  package var nodeID: Int64 { heartbeat?.id ?? 0 }

  package var holdsLeases: Bool { heartbeat.map { $0.livingID != nil } ?? true }

  package func claimWork(limit: Int) async throws -> FoundNotifications {
    // A node whose lease may have ended has no lease to claim under.
    guard let heartbeat, let node = heartbeat.livingID, limit > 0 else {
      return FoundNotifications()
    }
    let claim = Int64.random(in: 1 ... .max)
    let (lost, steady) = (heartbeat.lostClaims, clock.steady())
    do {
      // A lost claim is found by its number: a commit mark would cost a row for each poll for work.
      return try await write(as: .delivery(), ifUnclear: .refuse) { session in
        try PostgresClaims(session).claim(claim, limit: limit, afterLosing: lost, at: node)
        var found = try PostgresClaims(session).parts(of: claim, at: node)
        try PostgresClaims(session).date(&found, steady)
        return found
      }
    } catch {
      // It may have been committed, or be later: subsequent claims take over what this one has.
      heartbeat.lose(claim: claim)
      throw error
    }
  }

  package func unclaimedWork(
    dueBy moment: Date, beside known: Set<WorkID>
  ) async throws -> UnclaimedWork {
    let node = heartbeat?.id ?? 0
    let steady = moment.addingTimeInterval(clock.steady().timeIntervalSince(clock.now()))
    let (ids, parts) = PostgresClaims.arrays(of: known)
    let isDue = """
      n.ended_at IS NULL AND n.state <> 'Scheduled'
        AND COALESCE(n.steady_release <= ?2, \(NotificationRecord.release) <= ?1)
      """
    // Parts that this node owns without knowing are not waiting for another node.
    let isClaimed = """
      EXISTS (SELECT 1 FROM work w JOIN node ON node.id = w.owner
        WHERE w.notification = n.id AND w.is_done = 0 AND w.epoch > 0
          AND (w.owner <> ?3 OR \(PostgresClaims.isKnown("w", ids: "?4", parts: "?5")))
          AND \(NodeTable.isAlive("node")))
      """
    return try await readFreely { session in
      let row = try session.connection.statement(
        """
        SELECT (SELECT COUNT(*) FROM notification n
          WHERE \(isDue)
            AND EXISTS (SELECT 1 FROM work w WHERE w.notification = n.id AND w.is_done = 0)
            AND NOT \(isClaimed))
          + (SELECT COUNT(*) FROM notification WHERE state = 'Scheduled' AND due_at <= ?1),
        (SELECT COUNT(*) FROM notification n JOIN work w ON w.notification = n.id
          WHERE \(isDue) AND \(PostgresClaims.isForgotten("w", by: "?3", ids: "?4", parts: "?5")))
        """, moment.milliseconds, steady.milliseconds, node, ids, parts)
      guard try row.step() else { return UnclaimedWork(count: 0) }
      return UnclaimedWork(count: Int(row.integer(0)), isForgotten: row.integer(1) > 0)
    }
  }

  package func releaseWork() async throws {
    guard let node = heartbeat?.id else { return }
    try await write(as: .delivery(), ifUnclear: .again) {
      try NodeTable($0.connection).release(node)
    }
  }

  package func releaseWork(
    _ lease: WorkLease, of id: NotificationID, hub: Hub.ID
  ) async throws {
    guard let node = heartbeat?.id else { return }
    try await write(ifUnclear: .again) { session in
      _ = try session.execute(
        """
        UPDATE work SET owner = NULL FROM notification n
        WHERE n.hub = ?1 AND n.public_id = ?2 AND work.notification = n.id AND work.part = ?3
          AND work.owner = ?4 AND work.epoch = ?5 AND work.is_done = 0
        """, hub, id.rawValue, Int64(lease.part), node, lease.epoch)
    }
  }

  package func releaseWork(beside known: Set<WorkID>) async throws {
    guard let node = heartbeat?.id else { return }
    let (ids, parts) = PostgresClaims.arrays(of: known)
    try await write(as: .delivery(), ifUnclear: .again) { session in
      _ = try session.execute(
        """
        UPDATE work SET owner = NULL FROM notification n
        WHERE n.ended_at IS NULL AND work.notification = n.id
          AND \(PostgresClaims.isForgotten("work", by: "?1", ids: "?2", parts: "?3"))
        """, node, ids, parts)
    }
  }

  package func waitingRetries(
    _ id: NotificationID, part: Int?, hub: Hub.ID
  ) async throws -> Int {
    let node = heartbeat?.id
    return try await read(as: .delivery()) { session in
      if let part, let node {
        let row = try session.connection.statement(
          """
          SELECT w.owner FROM work w JOIN notification n ON n.id = w.notification
          WHERE n.hub = ?1 AND n.public_id = ?2 AND w.part = ?3
          """, hub, id.rawValue, Int64(part))
        if try row.step(), row.optionalInteger(0) != node { throw StoreError.leaseLost }
      }
      return Int(
        try session.first(
          """
          SELECT COUNT(*) FROM retry r JOIN notification n ON n.id = r.notification
          WHERE n.hub = ?1 AND n.public_id = ?2
            AND (CAST(?3 AS BIGINT) IS NULL OR r.part = CAST(?3 AS BIGINT))
          """, hub, id.rawValue, part.map(Int64.init)) ?? 0)
    }
  }
}

/// Writes the changes of a page of deliveries.
extension PostgresHubStore {
  @discardableResult
  package func checkpoint(_ checkpoint: Checkpoint) async throws -> CheckpointAnswer {
    // Written with the page: when the reply to the commit is lost, the mark tells whether it was
    // committed, even if nobody could look and the page is retried.
    let mark = checkpoint.number.map { checkpoint.lease.epoch << 32 &+ $0 } ?? .random(in: .min..<0)
    let node = heartbeat?.id
    return try await write(
      as: checkpoint.label,
      ifUnclear: .look { try PostgresCheckpoints($0).answer(to: checkpoint, marked: mark) },
      { session in
        try session.lockHub(checkpoint.hub)
        try session.requireHub(checkpoint.hub)
        return try PostgresCheckpoints(session).apply(checkpoint, marked: mark, at: node)
      })
  }
}

/// Findings of nodes about lanes, as rows that belong to the sender.
extension PostgresHubStore {
  package func exchange(
    _ findings: Set<LaneFinding>, recovered: Set<LaneKey>
  ) async throws -> PeerReport {
    guard let heartbeat else { return PeerReport() }
    let node = heartbeat.id
    let told = heartbeat.told(as: node)
    // Usually there is nothing new to announce.
    guard findings != told || !recovered.isEmpty else {
      return try await readFreely(as: .delivery()) {
        try PostgresLaneFindings($0).news(for: node, told)
      }
    }
    let news = try await write(as: .delivery(), ifUnclear: .again) { session in
      try PostgresLaneFindings(session).tell(findings, told, as: node)
      try PostgresLaneFindings(session).takeBack(recovered)
      return try PostgresLaneFindings(session).news(for: node, told.intersection(findings))
    }
    heartbeat.note(told: findings, as: node)
    return news
  }
}
