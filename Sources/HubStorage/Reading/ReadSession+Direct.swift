import HubCore
import NotificationHubs
import SQLDatabase

extension ReadSession {
  func directTargets(
    of id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) throws -> TargetPage {
    guard let direct = try directSend(id, hub: hub), limit > 0 else { return TargetPage() }
    let row = try connection.statement(
      """
      SELECT number, handle, is_duplicate FROM notification_target
      WHERE notification = ?1 AND number > ?2 ORDER BY number LIMIT ?3
      """)
    try row.bind(direct.number, at: 1)
    try row.bind(after, at: 2)
    try row.bind(Int64(limit) + 1, at: 3)
    var page = TargetPage()
    while try row.step() {
      if page.targets.count == limit {
        page.next = page.targets.last?.registration
        break
      }
      page.append(row, platform: direct.platform)
    }
    return page
  }

  /// Targets of a direct send by their numbers, in rising order.
  func directTargets(of id: NotificationID, hub: Hub.ID, numbers: [Int64]) throws -> TargetPage {
    var page = TargetPage()
    guard let direct = try directSend(id, hub: hub) else { return page }
    let row = try connection.statement(
      """
      SELECT number, handle, is_duplicate FROM notification_target
      WHERE notification = ?1 AND number = ?2
      """)
    for number in numbers {
      try row.bind(direct.number, at: 1)
      try row.bind(number, at: 2)
      if try row.step() { page.append(row, platform: direct.platform) }
      row.reset()
    }
    return page
  }

  private func directSend(
    _ id: NotificationID, hub: Hub.ID
  ) throws -> (number: Int64, platform: PushPlatform)? {
    let row = try connection.statement(
      "SELECT id, format FROM notification WHERE hub = ?1 AND public_id = ?2 AND is_direct = 1")
    try row.bind(hub, at: 1)
    try row.bind(id.rawValue, at: 2)
    guard try row.step() else { return nil }
    return (row.integer(0), try PushPlatform(code: row.integer(1)))
  }
}

extension TargetPage {
  /// - Parameter row: `number`, `handle`, `is_duplicate`.
  fileprivate mutating func append(_ row: borrowing Statement, platform: PushPlatform) {
    let start = handles.count
    row.withBytes(1) { handles.append(contentsOf: $0) }
    targets.append(
      Target(
        registration: row.integer(0), handle: start..<handles.count, platform: platform,
        template: -1, variables: -1, confirmedAt: 0, isDuplicate: row.integer(2) != 0))
  }
}
