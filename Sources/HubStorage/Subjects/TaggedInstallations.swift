import HubCore
import NotificationHubs
import SQLDatabase

/// Installations that have a tag, listed without reading those that do not.
///
/// A tag's members are registrations. The list visits them in the order of their numbers, and an
/// installation is listed at the first of its registrations with the tag. After them come the
/// installations whose document names more than their registrations say, because a handle of theirs
/// is dead.
struct TaggedInstallationReader: ReadingSubject {
  let session: ReadSession

  init(_ session: ReadSession) { self.session = session }

  /// Positions from here on are those of installations listed apart from their registrations.
  private static let apart = InstallationPosition(UInt32.max) + 1

  func candidates(
    carrying tag: Tag, hub: Hub.ID, after position: InstallationPosition, limit: Int
  ) throws -> InstallationReader.Candidates {
    let number = try connection.tagNumber(.plain(tag.folded, hub: hub))
    var positions: [InstallationPosition] = []
    if let number, position < Self.apart {
      positions = try RegistrationListReader(session).source(of: [number]).next(position, limit)
    }
    positions += try connection.numbers(
      """
      SELECT id FROM installation WHERE hub = ?1 AND fingerprint = 0 AND id > ?2
      ORDER BY id LIMIT ?3
      """, hub, max(position - Self.apart, 0), Int64(limit - positions.count)
    ).map { Self.apart + $0 }
    return InstallationReader.Candidates(positions: positions) { position in
      guard position < Self.apart else {
        let installation = position - Self.apart
        let isListed = try firstMember(of: number, in: installation) != nil
        return isListed ? nil : installation
      }
      // 0 is no installation: a client has written the registration itself.
      guard let row = try connection.registrationRow(position), row.installation != 0,
        try firstMember(of: number, in: row.installation) == position
      else { return nil }
      return row.installation
    }
  }

  /// The first registration of an installation that has a tag.
  private func firstMember(of tag: Int64?, in installation: Int64) throws -> RegistrationID? {
    guard let tag else { return nil }
    return try connection.registrationRows(of: installation).filter { $0.tags.contains(tag) }.map(
      \.number
    )
    .min()
  }
}
