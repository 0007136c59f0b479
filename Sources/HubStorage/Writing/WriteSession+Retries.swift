import Foundation
import HubCore
import NotificationHubs
import SQLDatabase

extension WriteSession {
  /// See ``HubStore/hastenRetries(hub:platform:to:)``.
  func hastenRetries(hub: Hub.ID, platform: PushPlatform, to time: Date) throws {
    let row = try connection.statement(
      """
      UPDATE retry SET due = ?3 WHERE hub = ?1 AND platform = ?2 AND due > ?3
        AND notification IN (SELECT id FROM notification WHERE ended_at IS NULL)
      """)
    try row.bind(hub, at: 1)
    try row.bind(platform.code, at: 2)
    try row.bind(time.milliseconds, at: 3)
    try row.run()
  }
}
