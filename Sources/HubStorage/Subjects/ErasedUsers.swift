package import HubCore
package import NotificationHubs
import SQLDatabase
import Wire

extension SQLiteHubStore {
  package func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure {
    let notifications = try await read {
      try ErasureReader($0).notifications(onlyFor: userID, hub: hub)
    }
    return try await write { session in
      try session.requireHub(hub)
      return try ErasureWriter(session).erase(user: userID, notifications: notifications, hub: hub)
    }
  }
}

/// The erasure of a user.
struct ErasureWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// - Parameter notifications: The numbers of notifications that were for this user alone.
  func erase(
    user: String, notifications: [Int64], hub: Hub.ID
  ) throws -> UserErasure {
    var erasure = try NotificationTable(connection).erase(notifications)
    // Unused rows left by other work of this transaction are not this user's.
    try VocabularyWriter(session).clearUnused()
    for installation in try session.deviceKeys().installations(ofUser: user, hub: hub) {
      erasure.installations += 1
      for registration in try connection.registrationRows(of: installation.number) {
        // In the failures of a direct send the number is that of a target.
        erasure.deviceRecords += try execute(
          """
          DELETE FROM notification_failure WHERE registration = ?1
            AND (SELECT is_direct FROM notification WHERE notification.id = notification) = 0
          """, registration.number)
        // A retry without a registration counts as a channel that has gone, and is not sent.
        try RegistrationRowWriter(session).remove(registration, hub: hub)
      }
      erasure.deviceRecords += try deleteFailures(ofInstallation: installation.id, hub: hub)
      try InstallationWriter(session).deleteInstallation(installation.number)
    }
    (erasure.tags, erasure.templates) = try VocabularyWriter(session).clearUnused(isExact: true)
    return erasure
  }

  /// Deletes failures of a device whose registration was deleted earlier.
  private func deleteFailures(ofInstallation id: String, hub: Hub.ID) throws -> Int {
    try execute(
      """
      DELETE FROM notification_failure WHERE installation = ?1
        AND (SELECT hub FROM notification WHERE notification.id = notification) = ?2
      """, id, hub)
  }
}

extension NotificationTable {
  /// Deletes notifications that were for an erased user alone, each whole.
  func erase(_ numbers: [Int64]) throws -> UserErasure {
    var erasure = UserErasure(installations: 0, schedules: 0, notifications: 0, deviceRecords: 0)
    let isDatabase = connection.dialect == .postgres
    for number in numbers {
      let found = try connection.rows(
        "SELECT state, \(isDatabase ? "day" : "0") FROM notification WHERE id = ?1", number
      ) { (state: $0.text(0), day: $0.integer(1)) }
      guard let (state, day) = found.first else { continue }
      // The rows of the work are deleted first: a node that is delivering it loses its lease. A node
      // that is releasing it is waited for at the notification's row, and has created new work by
      // then.
      if isDatabase { try connection.change("DELETE FROM work WHERE notification = ?1", number) }
      let count = try connection.change("DELETE FROM notification WHERE id = ?1", number)
      for table in ["notification_target", "retry"] + connection.dialect.notificationParts {
        try connection.change("DELETE FROM \(table) WHERE notification = ?1", number)
      }
      erasure.deviceRecords += try connection.change(
        "DELETE FROM notification_failure WHERE notification = ?1 AND \(isDatabase ? "day" : "0") = ?2",
        number, day)
      guard count > 0 else { continue }
      if state == NotificationState.scheduled.rawValue {
        erasure.schedules += 1
      } else {
        erasure.notifications += 1
      }
    }
    return erasure
  }
}

/// Notifications that an erasure deletes.
struct ErasureReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// The numbers of notifications that can reach nobody but a user.
  func notifications(onlyFor userID: String, hub: Hub.ID) throws -> [Int64] {
    let own = try ownTags(ofUser: userID, hub: hub)
    let row = try connection.statement(
      """
      SELECT id, expression FROM notification WHERE hub = ?1 AND expression IS NOT NULL
      """, hub)
    var numbers: [Int64] = []
    while try row.step() {
      guard let bytes = row.optionalBytes(1) else { continue }
      var reader = ByteReader(bytes)
      if try reader.expression().isOnly(for: own) { numbers.append(row.integer(0)) }
    }
    return try numbers + directNotifications(to: handles(ofUser: userID, hub: hub), hub: hub)
  }

  /// The user's implicit tag, those of the user's installations, and the tags that no other device
  /// has.
  private func ownTags(ofUser userID: String, hub: Hub.ID) throws -> Set<Tag> {
    var tags: Set<Tag> = [.user(userID)]
    var registrations: Set<RegistrationID> = []
    var numbers: Set<Int64> = []
    for installation in try session.deviceKeys().installations(ofUser: userID, hub: hub) {
      tags.insert(.installation(installation.id))
      for row in try connection.registrationRows(of: installation.number) {
        registrations.insert(row.number)
        numbers.formUnion(row.tags)
      }
    }
    for (number, members) in try AudienceReader(session).members(of: Array(numbers)) {
      guard members.count <= registrations.count,
        members.first(members.count).allSatisfy({ registrations.contains(Int64($0)) })
      else { continue }
      let name = try connection.statement(
        "SELECT name FROM tag WHERE id = ?1 AND kind = \(TagKey.Kind.plain.rawValue)", number)
      if try name.step() { tags.insert(Tag(rawValue: name.text(0))) }
    }
    return tags
  }

  private func handles(ofUser userID: String, hub: Hub.ID) throws -> Set<String> {
    var handles: Set<String> = []
    for installation in try session.deviceKeys().installations(ofUser: userID, hub: hub) {
      handles.formUnion(try connection.registrationRows(of: installation.number).map(\.handle))
    }
    return handles
  }

  /// Direct sends that name no device but these. Reads the targets of all: an index on handles
  /// would cost every direct send more than the rare erasure.
  private func directNotifications(to handles: Set<String>, hub: Hub.ID) throws -> [Int64] {
    var candidates: Set<Int64> = []
    for handle in handles {
      candidates.formUnion(
        try connection.numbers(
          """
          SELECT notification FROM notification_target
          WHERE handle = ?1 AND (SELECT hub FROM notification WHERE id = notification) = ?2
          """, handle, hub))
    }
    return try candidates.sorted().filter { number in
      let row = try connection.statement(
        "SELECT handle FROM notification_target WHERE notification = ?1", number)
      while try row.step() {
        if !handles.contains(row.text(0)) { return false }
      }
      return true
    }
  }
}

extension DeviceKeys {
  /// Compares the user's id without regard to letter case.
  func installations(ofUser user: String, hub: Hub.ID) throws -> [(number: Int64, id: String)] {
    let folded = user.foldingCapitals
    let row = try connection.statement(
      "SELECT public_id, document FROM installation WHERE id = ?1 AND hub = ?2")
    try row.bind(hub, at: 2)
    var found: [(number: Int64, id: String)] = []
    for number in try numbers(of: .user(hash: PreparedInstallation.hash(folded), hub: hub)) {
      try row.bind(number, at: 1)
      if try row.step(),
        try InstallationDocument.userID(in: row.bytes(1))?.foldingCapitals == folded
      {
        found.append((number, row.text(0)))
      }
      row.reset()
    }
    return found
  }
}
