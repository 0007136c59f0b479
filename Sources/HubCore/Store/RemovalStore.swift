package import Foundation
package import NotificationHubs

/// Which removed registrations are meant.
package struct RemovalWave: Hashable, Sendable {
  /// `nil` means every platform.
  package var platform: PushPlatform?
  /// Those that were removed at this time or later.
  package var since: Date
  /// Whether the push service's word is in doubt: what it has left as feedback goes as well.
  package var isDoubted: Bool

  package init(
    platform: PushPlatform? = nil, since: Date = .distantPast, isDoubted: Bool = false
  ) {
    self.platform = platform
    self.since = since
    self.isDoubted = isDoubted
  }
}

/// Registrations that were removed within an hour for the same reason.
package struct RemovalCount: Hashable, Sendable {
  /// Hours since 1970.
  package let hour: Int64
  package let platform: PushPlatform
  package let outcome: NotificationOutcome
  package let count: Int

  package init(
    hour: Int64, platform: PushPlatform, outcome: NotificationOutcome, count: Int
  ) {
    self.hour = hour
    self.platform = platform
    self.outcome = outcome
    self.count = count
  }

  /// How long what was removed can be brought back, in seconds: a week.
  package static let lifetime: TimeInterval = 7 * 86_400
}

/// What one step of ``RemovalStore/restoreRemoved(_:hub:asOf:limit:)`` has done.
package struct Restoration: Hashable, Sendable {
  /// Registrations that are there again, or have their old handle again.
  package var restored: Int
  /// Those that stay away: the app has registered again meanwhile, or its time is over.
  package var superseded: Int
  package var hasMore: Bool

  package init(restored: Int = 0, superseded: Int = 0, hasMore: Bool = false) {
    self.restored = restored
    self.superseded = superseded
    self.hasMore = hasMore
  }
}

/// The part of a ``HubStore`` that keeps what was removed, or given another handle, on the word of a
/// push service.
///
/// Such a registration is in no audience, list or count. It can be brought back under its old number
/// until ``StoreClearing/clear(expiredBy:)`` is called with a time ``RemovalCount/lifetime`` after
/// the removal, until a registration is written for the same handle, or its installation, user or
/// hub is deleted.
package protocol RemovalStore: Sendable {
  /// What can be brought back, by hour, the oldest first.
  func removals(_ wave: RemovalWave, hub: Hub.ID) async throws -> [RemovalCount]
  /// Brings some of it back, in one transaction: registrations that no app has registered again, and
  /// the old handles of those whose new handle was not confirmed by an app.
  /// - Parameter limit: The most that are looked at; their installations' others come with them.
  func restoreRemoved(
    _ wave: RemovalWave, hub: Hub.ID, asOf now: Date, limit: Int
  ) async throws -> Restoration
}
