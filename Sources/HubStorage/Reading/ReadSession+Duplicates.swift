import HubCore
import SQLDatabase

extension ReadSession {
  /// Finds the targets of a page whose handle a smaller number of the same audience was sent to.
  ///
  /// One of an earlier page counts only when nothing has written it since the notification was
  /// accepted: then it was in the audience, with this handle, when its page was read. One that took
  /// the handle over meanwhile, or came into the audience, may have been passed over: its device
  /// gets the push through the target here, at the worst a second time.
  ///
  /// - Parameters:
  ///   - suspects: The members of the page whose handle any other registration has.
  ///   - after: Where the page began; smaller numbers stood in earlier ones.
  func markDuplicates(
    in page: inout TargetPage, suspects: Set<UInt32>, audience: Audience, query: AudienceQuery,
    after: RegistrationID
  ) throws {
    let version = try query.notification.map { try audienceCommit(of: $0, hub: query.hub) }
    /// Handles that somebody has who was sent to.
    var sent: Set<String> = []
    for index in page.targets.indices {
      let target = page.targets[index]
      guard let bit = UInt32(exactly: target.registration), suspects.contains(bit) else { continue }
      let handle = page.handles[target.handle].withUnsafeBytes {
        String(decoding: handleIdentity($0), as: UTF8.self)
      }
      guard sent.insert(handle).inserted else {
        page.targets[index].isDuplicate = true
        continue
      }
      let earlier = try holders(
        of: handle, like: target.registration, upTo: after, writtenBy: version ?? .max,
        asOf: query.asOf.milliseconds)
      guard !earlier.isEmpty else { continue }
      page.targets[index].isDuplicate = try withBitmaps(of: audience.tags) { bitmaps in
        earlier.contains { audience.contains($0, bitmaps) }
      }
    }
  }

  /// The transaction that accepted the notification, or released it; what is written later need not
  /// have been in its audience.
  private func audienceCommit(of id: NotificationID, hub: Hub.ID) throws -> Int64 {
    let row = try connection.statement(
      "SELECT audience_commit FROM notification WHERE hub = ?1 AND public_id = ?2")
    try row.bind(hub, at: 1)
    try row.bind(id.rawValue, at: 2)
    return try row.step() ? row.integer(0) : .max
  }

  /// Native registrations of earlier pages with the handle of one of this page, in rising order.
  private func holders(
    of handle: String, like registration: RegistrationID, upTo last: RegistrationID,
    writtenBy version: Int64, asOf now: Int64
  ) throws -> [UInt32] {
    let row = try connection.statement(
      """
      SELECT id, handle FROM registration WHERE template IS NULL AND handle_hash =
        (SELECT handle_hash FROM registration WHERE id = ?1)
        AND (expires_at IS NULL OR expires_at > ?2) AND id <= ?3 AND written <= ?4 ORDER BY id
      """)
    try row.bind(registration, at: 1)
    try row.bind(now, at: 2)
    try row.bind(last, at: 3)
    try row.bind(version, at: 4)
    var holders: [UInt32] = []
    while try row.step() {
      if row.hasHandle(handle, column: 1), let bit = UInt32(exactly: row.integer(0)) {
        holders.append(bit)
      }
    }
    return holders
  }
}
