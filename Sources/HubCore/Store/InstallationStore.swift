package import Foundation
package import NotificationHubs

/// Which installations a list has; what is `nil` does not matter.
package struct InstallationFilter: Hashable, Sendable {
  /// Carried by the installation itself, by a template or by a tile.
  package var tag: Tag?
  /// Letter case aside, as in the implicit tag of a user.
  package var userID: String?
  package var platform: PushPlatform?
  /// Whether nothing can reach it any more: its push channel is dead, or its time is over.
  package var isExpired: Bool?
  /// The moment by which times are judged.
  package var asOf: Date

  package init(
    tag: Tag? = nil, userID: String? = nil, platform: PushPlatform? = nil, isExpired: Bool? = nil,
    asOf: Date
  ) {
    self.tag = tag
    self.userID = userID
    self.platform = platform
    self.isExpired = isExpired
    self.asOf = asOf
  }

  package func matches(_ installation: Installation) -> Bool {
    if let platform, installation.platform != platform { return false }
    if let userID, installation.userID?.lowercased() != userID.lowercased() { return false }
    if let isExpired {
      let isOver = installation.expirationTime.map { $0 <= asOf } ?? false
      guard isExpired == (isOver || installation.pushChannelExpired) else { return false }
    }
    guard let tag else { return true }
    return installation.tags.contains(tag)
      || installation.templates.values.contains { $0.tags.contains(tag) }
      || installation.secondaryTiles.values.contains { tile in
        tile.tags.contains(tag) || tile.templates.values.contains { $0.tags.contains(tag) }
      }
  }
}

/// A place in the list of a hub's installations: the number, above 0, that the store has given to
/// the last one before it, which may be gone.
package typealias InstallationPosition = Int64

/// A part of a list of installations.
package struct InstallationPage: Sendable {
  package private(set) var installations: [Installation] = []
  private var size = PageSize()
  /// Where the list goes on; `nil` at its end. A page may be short, or even empty, and yet not the
  /// last: looking for rare ones is done by stretches, and large ones fill a page soon.
  package var next: InstallationPosition?

  package init(next: InstallationPosition? = nil) { self.next = next }

  package mutating func append(_ installation: Installation) {
    installations.append(installation)
    size.add(installation)
  }

  /// - Parameter limit: The most installations.
  package func isFull(_ limit: Int) -> Bool { installations.count >= limit || size.isReached }
}

/// Installations, each with the registrations that are derived from it.
package protocol InstallationStore: Sendable {
  func installation(_ id: String, hub: Hub.ID) async throws -> Installation?
  /// Creates or replaces the installation and its derived registrations.
  func putInstallation(
    _ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date
  ) async throws
  /// Reads, changes and writes an installation in one transaction; nothing is written when
  /// `change` throws. The etags of its registrations rise.
  /// - Returns: `false` when there is none (`change` was not called).
  func updateInstallation(
    _ id: String, hub: Hub.ID, at: Date,
    change: @escaping @Sendable (Installation) throws -> (Installation, [RegistrationDraft])
  ) async throws -> Bool
  /// - Returns: `false` when there was none.
  func deleteInstallation(_ id: String, hub: Hub.ID) async throws -> Bool
  /// The next installations, in an order of the store's own; at most `limit`, and fewer when they
  /// are large (``PageSize``).
  func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: InstallationPosition?, limit: Int
  ) async throws -> InstallationPage
  /// Removes a user's installations with their registrations, what is kept about these devices, the
  /// tags and templates that no other device has, and every notification that was for this user
  /// alone, by the user's tag, an installation's or one that goes.
  ///
  /// In one transaction, or in several: what ends early goes on with the next call, which tells of
  /// what was left for it.
  /// - Parameter userID: Letter case aside, as in the implicit tag of a user.
  func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure
}
