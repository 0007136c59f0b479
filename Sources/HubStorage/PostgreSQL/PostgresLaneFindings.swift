import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

/// Statements that nodes exchange about delivery queues.
struct PostgresLaneFindings: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  func tell(_ findings: Set<LaneFinding>, _ told: Set<LaneFinding>, as node: Int64) throws {
    for finding in told.subtracting(findings) {
      try execute(
        "DELETE FROM lane_finding WHERE node = ?1 AND hub = ?2 AND platform = ?3 AND kind = ?4",
        node,
        finding.lane.hub, finding.lane.platform.code, Int64(finding.kind.rawValue))
    }
    for finding in findings.subtracting(told) {
      try execute(
        """
        INSERT INTO lane_finding
          (node, hub, platform, kind, credential, time, count, judged, reason)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
        ON CONFLICT (node, hub, platform, kind) DO UPDATE SET credential = excluded.credential,
          time = excluded.time, count = excluded.count, judged = excluded.judged,
          reason = excluded.reason
        """, node, finding.lane.hub, finding.lane.platform.code, Int64(finding.kind.rawValue),
        finding.credential.milliseconds, finding.time.milliseconds, Int64(finding.count),
        Int64(finding.judged), finding.reason?.storable)
    }
  }

  /// Withdraws refusals after a push has succeeded: nodes whose credential was refused may try
  /// again.
  func takeBack(_ lanes: Set<LaneKey>) throws {
    for lane in lanes {
      try execute(
        "DELETE FROM lane_finding WHERE hub = ?1 AND platform = ?2 AND kind = ?3", lane.hub,
        lane.platform.code, Int64(LaneFinding.Kind.refused.rawValue))
    }
  }

  /// - Parameter told: The findings that this node has announced before; a refusal that is missing now
  ///   is lifted.
  func news(for node: Int64, _ told: Set<LaneFinding>) throws -> PeerReport {
    var news = PeerReport()
    news.lifted = Set(told.lazy.filter { $0.kind == .refused }.map(\.lane))
    let row = try connection.statement(
      """
      SELECT w.node, w.hub, w.platform, w.kind, w.credential, w.time, w.count, w.judged, w.reason
      FROM lane_finding w JOIN node n ON n.id = w.node
      WHERE w.node = ?1 OR \(NodeTable.isAlive("n"))
      """, node)
    while try row.step() {
      // Findings of a newer version that this one does not know are ignored.
      guard let platform = try? PushPlatform(code: row.integer(2)),
        let kind = LaneFinding.Kind(rawValue: Int(row.integer(3)))
      else { continue }
      let finding = LaneFinding(
        LaneKey(hub: row.integer(1), platform: platform), kind,
        credential: Date(milliseconds: row.integer(4)), time: Date(milliseconds: row.integer(5)),
        count: Int(row.integer(6)), judged: Int(row.integer(7)), reason: row.optionalText(8))
      if row.integer(0) != node {
        news.findings.append(finding)
      } else if kind == .refused {
        news.lifted.remove(finding.lane)
      }
    }
    news.nodes = Int(
      try first("SELECT count(*) FROM node n WHERE \(NodeTable.isAlive("n"))") ?? 1)
    news.aborted = try connection.rows(
      """
      SELECT public_id FROM notification n WHERE aborted_at IS NOT NULL AND ended_at IS NULL
        AND EXISTS (SELECT 1 FROM work w
          WHERE w.notification = n.id AND w.is_done = 0 AND w.owner = ?1)
      ORDER BY id
      """, node
    ) { NotificationID(rawValue: $0.text(0)) }
    return news
  }
}
