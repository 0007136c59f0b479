import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  /// See ``HubStore/hastenRetries(hub:platform:to:)``. Rare, so it may look at every waiting row of
  /// the hub.
  func hastenRetries(hub: Hub.ID, platform: PushPlatform, to time: Date) throws {
    let conditions = [
      """
      is_direct = 0) AND EXISTS (
        SELECT 1 FROM registration WHERE id = retry.registration AND platform = ?2)
      """,
      "is_direct = 1 AND format = ?2)",
    ]
    for condition in conditions {
      let row = try connection.statement(
        """
        UPDATE retry SET due = ?3 WHERE due > ?3 AND notification IN (
          SELECT id FROM notification WHERE hub = ?1 AND ended_at IS NULL AND \(condition)
        """)
      try row.bind(hub, at: 1)
      try row.bind(platform.code, at: 2)
      try row.bind(time.milliseconds, at: 3)
      try row.run()
    }
  }
}
