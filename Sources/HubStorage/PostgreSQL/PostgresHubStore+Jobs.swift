package import Foundation
package import HubCore
import SQLDatabase

/// Jobs belong to the node that runs them; others take them over when it is gone.
extension PostgresHubStore {
  package func addJob(_ job: HubJob, forgetting limit: Date) async throws {
    let node = heartbeat?.livingID
    try await write(ifUnclear: .refuse) { session in
      try session.lockHub(job.hub)
      try session.requireHub(job.hub)
      try session.insert(job, forgetting: limit)
      try session.execute(
        "UPDATE job SET owner = ?3 WHERE hub = ?1 AND public_id = ?2", job.hub, job.id, node)
    }
  }

  /// - Throws: ``StoreError/leaseLost`` when the job is now owned by another node.
  package func updateJob(_ job: HubJob) async throws {
    let node = heartbeat?.id
    try await write(ifUnclear: .again) { session in
      // Locked until the transaction ends, so that nobody takes it over in between.
      let row = try session.connection.statement(
        "SELECT owner FROM job WHERE hub = ?1 AND public_id = ?2 FOR UPDATE", job.hub, job.id)
      guard try row.step() else { return }
      if let owner = row.optionalInteger(0), owner != node { throw StoreError.leaseLost }
      try session.update(job)
    }
  }

  /// The unfinished jobs that no living node owns; this node becomes their owner.
  package func unfinishedJobs() async throws -> [HubJob] {
    guard let heartbeat else {
      return try await read { try $0.jobs("WHERE ended_at IS NULL ORDER BY created_at") }
    }
    guard let node = heartbeat.livingID else { return [] }
    return try await write(ifUnclear: .again) { session in
      try session.execute(
        """
        UPDATE job SET owner = ?1 WHERE ended_at IS NULL AND (hub, public_id) IN (
          SELECT hub, public_id FROM job WHERE ended_at IS NULL AND (owner IS NULL OR NOT EXISTS (
            SELECT 1 FROM node WHERE node.id = job.owner
              AND \(NodeTable.isAlive("node"))))
          FOR UPDATE SKIP LOCKED)
        """, node)
      return try session.jobs(
        "WHERE ended_at IS NULL AND owner = ?1 ORDER BY created_at", node)
    }
  }
}
