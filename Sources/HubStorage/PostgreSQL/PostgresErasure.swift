import HubCore
import NotificationHubs
import SQLDatabase
import Wire

/// Erases what belongs to a user.
struct PostgresErasure: PostgresSubject {
  let session: PostgresSession

  init(_ session: PostgresSession) { self.session = session }

  /// An installation: the number of its row, and its id.
  typealias Device = (number: Int64, id: String)

  /// Everything that belongs to a user: the devices, the numbers of notifications that were for
  /// this user alone, and the number of tags and templates that nobody else has.
  func belongings(
    of user: String, hub: Hub.ID
  ) throws -> ([Device], notifications: [Int64], own: (tags: Int, templates: Int)) {
    let devices = try PostgresTargets(session).installations(ofUser: user, hub: hub)
    let numbers = devices.map(\.number)
    let tags = try ownTags(ofInstallations: numbers, hub: hub)
    return (
      devices, try notifications(onlyFor: user, devices, tags: tags, hub: hub),
      (tags.count, try ownTemplates(ofInstallations: numbers, hub: hub))
    )
  }

  /// Deletes devices that still belong to the user, and everything stored about them.
  /// - Returns: The number of devices, and of rows about them.
  func erase(
    devices: [Device], of user: String, hub: Hub.ID
  ) throws -> (installations: Int, deviceRecords: Int) {
    try PostgresDevices(session).lock(
      devices.map {
        PostgresDevices.DeviceLock.device(
          hub: hub, hash: PreparedInstallation.hash($0.id.foldingCapitals))
      })
    // Read again, now that the locks exclude other writers.
    let installations = try PostgresTargets(session).installations(
      ofUser: user, hub: hub, among: devices.map(\.number))
    let numbers = installations.map(\.number)
    let registrations = try PostgresDevices(session).registrationRows(
      ofInstallations: numbers.map { (hub, $0) })
    // In failures of a direct send this column is the number of a target.
    let records = try execute(
      """
      DELETE FROM notification_failure f USING notification n
      WHERE n.id = f.notification AND n.hub = ?1 AND n.is_direct = 0
        AND (f.registration = ANY(?2::int8[]) OR f.installation = ANY(?3::text[]))
      """, hub, PostgresArray.int8(registrations.map(\.number)),
      PostgresArray.text(installations.map(\.id)))
    // A retry without a registration counts as a channel that is gone, and is not sent.
    try PostgresInstallations(session).deleteInstallations(numbers.map { (hub, $0) })
    return (numbers.count, records)
  }

  /// The numbers of notifications that can reach nobody but a user.
  /// - Parameter tags: Tags that only the user's devices have.
  private func notifications(
    onlyFor userID: String, _ devices: [Device], tags: [String], hub: Hub.ID
  ) throws -> [Int64] {
    let own = Set(tags.map { Tag(rawValue: $0) })
      .union(devices.map { Tag.installation($0.id) }).union([.user(userID)])
    let row = try connection.statement(
      "SELECT id, expression FROM notification WHERE hub = ?1 AND expression IS NOT NULL", hub)
    var found: [Int64] = []
    while try row.step() {
      var reader = ByteReader(row.bytes(1))
      if try reader.expression().isOnly(for: own) { found.append(row.integer(0)) }
    }
    let handles = try PostgresDevices(session).registrationRows(
      ofInstallations: devices.map { (hub, $0.number) }
    )
    .map(\.handle)
    // Reads the targets of all direct sends: an index on handles would cost each of them more than
    // the rare erasure.
    return try found
      + connection.numbers(
        """
        SELECT DISTINCT t.notification FROM notification_target t
        JOIN notification n ON n.id = t.notification AND n.hub = ?1
        WHERE t.handle = ANY(?2::text[]) AND NOT EXISTS (
          SELECT 1 FROM notification_target o
          WHERE o.notification = t.notification AND o.handle <> ALL(?2::text[]))
        ORDER BY 1
        """, hub, PostgresArray.text(handles))
  }

  /// The tags of installations that no other device has.
  private func ownTags(ofInstallations numbers: [Int64], hub: Hub.ID) throws -> [String] {
    try connection.rows(
      """
      WITH own AS (
        SELECT DISTINCT tag FROM registration r CROSS JOIN LATERAL unnest(r.tags) AS tag
        WHERE r.hub = ?1 AND r.slot = ANY(?2::int2[]) AND r.installation <> 0
          AND r.installation = ANY(?3::int8[]))
      SELECT tag FROM own WHERE NOT EXISTS (
        SELECT 1 FROM registration o WHERE o.hub = ?1 AND o.tags @> ARRAY[own.tag]
          AND o.installation <> ALL(?3::int8[]))
      """, hub, PostgresArray.int2(Set(numbers.map { slots.slot(ofNumber: $0) })),
      PostgresArray.int8(numbers)
    ) { $0.text(0) }
  }

  /// Number of templates of installations that no other device has. Reads all registrations of the
  /// hub, because there is no index on their templates.
  private func ownTemplates(ofInstallations numbers: [Int64], hub: Hub.ID) throws -> Int {
    guard !numbers.isEmpty else { return 0 }
    return Int(
      try first(
        """
        WITH own AS (
          SELECT DISTINCT template FROM registration
          WHERE hub = ?1 AND slot = ANY(?2::int2[]) AND installation <> 0
            AND installation = ANY(?3::int8[]) AND template IS NOT NULL)
        SELECT COUNT(*) FROM (
          SELECT template FROM own EXCEPT
          SELECT template FROM registration
          WHERE hub = ?1 AND installation <> ALL(?3::int8[])
            AND template IN (SELECT template FROM own)) AS left_over
        """, hub, PostgresArray.int2(Set(numbers.map { slots.slot(ofNumber: $0) })),
        PostgresArray.int8(numbers)) ?? 0)
  }
}
