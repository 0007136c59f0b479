package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func devices(
    _ filter: RegistrationFilter, hub: Hub.ID, asOf: Date, limit: Int
  ) async throws -> FoundDevices {
    let coding = coding
    return try await read { session in
      guard try session.hasHub(hub) else { return FoundDevices() }
      return try DeviceReader(session).devices(
        filter, hub: hub, asOf: asOf, limit: limit, coding: coding)
    }
  }
}

/// Devices that have a handle.
struct DeviceReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// Finds through the keys of handles: the registrations that have one, and the installations that
  /// they belong to or belonged to.
  fileprivate func devices(
    _ filter: RegistrationFilter, hub: Hub.ID, asOf: Date, limit: Int, coding: RegistrationIDCoding
  ) throws -> FoundDevices {
    let reader = RegistrationReader(connection: connection, templates: templates, coding: coding)
    // Before the rows are read: a time that is written meanwhile is in one of them.
    let times = session.confirmations.times
    let known = try registrations(of: filter, hub: hub, limit: limit)
    var found = FoundDevices()
    found.hasMore = known.isCut
    var names: [Int64: String] = [:]
    for number in known.installations {
      guard let installation = try connection.installation(number, templates: templates) else {
        continue
      }
      // Its registrations may be others' by now, or of a tile whose handle it was.
      guard filter.matches(installation) else { continue }
      names[number] = installation.installationID
      if installation.expirationTime.map({ $0 > asOf }) ?? true {
        found.append(installation)
      }
    }
    found.sortInstallations()
    for number in known.numbers {
      guard let one = try reader.registration(number, hub: hub), !one.isOver(at: asOf),
        filter.matches(platform: one.stored.draft.platform, channel: one.stored.draft.channel)
      else { continue }
      found.append(
        .init(
          stored: one.stored, installationID: names[one.row.installation],
          environment: PushEnvironment(stored: one.environment),
          confirmedAt: Date(
            milliseconds: times.time(
              of: one.row.installation, written: one.row.confirmedAt))))
    }
    return found
  }

  /// Rows that may be meant, by the hashes of their handles, in rising order of their numbers.
  private func registrations(
    of filter: RegistrationFilter, hub: Hub.ID, limit: Int
  ) throws -> (numbers: [RegistrationID], installations: [Int64], isCut: Bool) {
    var numbers: Set<RegistrationID> = []
    var installations: Set<Int64> = []
    var isCut = false
    let keys = try session.deviceKeys()
    let platforms = filter.platform.map { [$0] } ?? PushPlatform.allCases
    for platform in platforms {
      for handle in filter.handles {
        let hash = PreparedRegistration.hash(of: handle, platform: platform.code, hub: hub)
        var count = 0
        func take(_ row: borrowing Statement) {
          count += 1
          guard count <= limit else { return }
          numbers.insert(row.integer(0))
          if row.integer(1) != 0 { installations.insert(row.integer(1)) }
        }
        try keys.visit(.handle(hash: hash)) { number in
          let row = try connection.statement(
            """
            SELECT id, installation FROM registration
            WHERE id = ?1 AND handle_hash = ?2 AND template IS NULL
            """, number, hash)
          if try row.step() { take(row) }
          return count <= limit
        }
        for source in [
          "registration WHERE template_handle = ?1",
          // Of a device whose handle is dead only the installation is left.
          "removed_registration WHERE handle_hash = ?1 AND installation <> 0",
        ] {
          let row = try connection.statement(
            "SELECT id, installation FROM \(source) LIMIT ?2", hash, Int64(limit + 1))
          while count <= limit, try row.step() { take(row) }
        }
        if count > limit { isCut = true }
      }
    }
    if installations.count > limit { isCut = true }
    let kept = installations.sorted().prefix(limit)
    for installation in kept {
      for row in try connection.registrationRows(of: installation) { numbers.insert(row.number) }
    }
    if numbers.count > limit { isCut = true }
    return (Array(numbers.sorted().prefix(limit)), Array(kept), isCut)
  }
}

extension RegistrationFilter {
  /// Whether the device, or one of its tiles, has one of the handles.
  func matches(_ installation: Installation) -> Bool {
    matches(platform: installation.platform, channel: installation.pushChannel)
      || installation.secondaryTiles.values.contains {
        matches(platform: installation.platform, channel: .handle($0.pushChannel))
      }
  }
}
