package import Foundation
package import NotificationHubs

/// A filter for a list of installations; `nil` matches everything.
package struct InstallationFilter: Hashable, Sendable {
  /// A tag of the installation itself, of a template or of a tile.
  package var tag: Tag?
  /// Compared without regard to letter case, as in the implicit tag of a user.
  package var userID: String?
  package var platform: PushPlatform?
  /// A part of the id, of the user's id or of a tag, in lower case.
  package var search: String?
  /// Whether it is unreachable: its push channel is dead, or it has expired.
  package var isExpired: Bool?
  /// The time at which expiry is judged.
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
    if let search, !installation.has(search) { return false }
    if let isExpired {
      let isOver = installation.expirationTime.map { $0 <= asOf } ?? false
      guard isExpired == (isOver || installation.pushChannelExpired) else { return false }
    }
    guard let tag else { return true }
    return installation.hasTag { $0 == tag }
  }
}

extension Installation {
  /// Whether a text in lower case is a part of the id, of the user's id or of a tag.
  fileprivate func has(_ text: String) -> Bool {
    installationID.lowercased().contains(text) || userID?.lowercased().contains(text) == true
      || hasTag { $0.rawValue.lowercased().contains(text) }
  }

  /// Whether a tag of its own, of a template or of a tile satisfies a condition.
  fileprivate func hasTag(_ isWanted: (Tag) -> Bool) -> Bool {
    tags.contains(where: isWanted)
      || templates.values.contains { $0.tags.contains(where: isWanted) }
      || secondaryTiles.values.contains { tile in
        tile.tags.contains(where: isWanted)
          || tile.templates.values.contains { $0.tags.contains(where: isWanted) }
      }
  }
}

/// A position in the list of a hub's installations: the store's number, above 0, of the last one
/// before it, which may have been deleted.
package typealias InstallationPosition = Int64

/// A part of a list of installations.
package struct InstallationPage: Sendable {
  package private(set) var installations: [Installation] = []
  private var size = PageSize()
  /// The position of the next page; `nil` at the end of the list. A page may be short, or even
  /// empty, without being the last: rare ones are searched for in slices, and large ones fill a
  /// page quickly.
  package var next: InstallationPosition?

  package init(next: InstallationPosition? = nil) { self.next = next }

  package mutating func append(_ installation: Installation) {
    installations.append(installation)
    size.add(installation)
  }

  /// - Parameter limit: Maximum number of installations.
  package func isFull(_ limit: Int) -> Bool { installations.count >= limit || size.isReached }
}

/// A request that writes an installation, by which a repeat is recognised without reading it.
package struct InstallationRequest: Sendable {
  package let body: [UInt8]
  /// The limits that decide whether the body is accepted.
  package let rules: [Int]

  package init(body: [UInt8], rules: [Int]) {
    self.body = body
    self.rules = rules
  }
}

/// Installations, each with the registrations that are derived from it.
package protocol InstallationStore: Sendable {
  func installation(_ id: String, hub: Hub.ID) async throws -> Installation?
  /// Records that a device was seen, if its installation is as the same request has left it and has
  /// not expired. The time may be written a little later; ``AudienceStore/targets(_:after:limit:)``
  /// sees it at once.
  /// - Returns: `false` if that is not certain, and the request has to be read and written. An engine
  ///   that could not tell without another round trip always returns that.
  func confirmInstallation(
    _ id: String, request: InstallationRequest, hub: Hub.ID, at: Date
  ) async throws -> Bool
  /// Creates or replaces the installation and its derived registrations. Consumes both, so that they
  /// are freed where they were made, and not after the write on another thread.
  /// - Parameter request: The request that ``confirmInstallation(_:request:hub:at:)`` recognises;
  ///   `nil` if a repeat of it changes something.
  func putInstallation(
    _ installation: consuming Installation, registrations: consuming [RegistrationDraft],
    request: InstallationRequest?, hub: Hub.ID, at: Date
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
  /// Removes a user's installations with their registrations, everything stored about these
  /// devices, the tags and templates that no other device has, and every notification that was for
  /// this user alone, addressed by the user's tag, an installation's or one that is deleted.
  ///
  /// In one transaction, or in several: an erasure that ends early continues with the next call,
  /// which reports the rest.
  /// - Parameter userID: Compared without regard to letter case, as in the implicit tag of a user.
  func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure
}

extension InstallationStore {
  package func confirmInstallation(
    _ id: String, request: InstallationRequest, hub: Hub.ID, at: Date
  ) async throws -> Bool { false }
}
