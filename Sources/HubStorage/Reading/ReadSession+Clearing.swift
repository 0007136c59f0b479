import HubCore
import SQLDatabase

extension ReadSession {
  func hasSomethingToClear(expiredBy limit: Int64) throws -> Bool {
    let row = try connection.statement(
      """
      SELECT 1 WHERE EXISTS (SELECT 1 FROM deleted_hub)
        OR EXISTS (SELECT 1 FROM installation WHERE expires_at <= ?1)
        OR EXISTS (SELECT 1 FROM hub JOIN registration ON registration.hub = hub.id
          WHERE registration.expires_at <= ?1)
        OR EXISTS (SELECT 1 FROM hub JOIN removed_registration AS removed ON removed.hub = hub.id
          WHERE removed.removed_at <= ?2)
      """)
    try row.bind(limit, at: 1)
    try row.bind(limit - Int64(RemovalCount.lifetime * 1000), at: 2)
    return try row.step()
  }

  func hasNotifications(endedBefore limit: Int64) throws -> Bool {
    let row = try connection.statement("SELECT 1 FROM notification WHERE ended_at < ?1 LIMIT 1")
    try row.bind(limit, at: 1)
    return try row.step()
  }

  func hasHub(_ hub: Hub.ID) throws -> Bool { try connection.hasHub(hub) }
}
