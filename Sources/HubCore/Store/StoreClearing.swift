package import Foundation

/// The part of a ``HubStore`` that gives room back.
package protocol StoreClearing: Sendable {
  /// Deletes some of what nobody can see any more: devices and registrations whose time was over
  /// by `limit`, and what deleted hubs have left behind. A call does little, in a transaction of
  /// its own, so that writers do not wait for it.
  /// - Returns: `true` when there may be more.
  func clear(expiredBy limit: Date) async throws -> Bool
  /// Deletes some notifications that had their final state before a time, with all that is kept of
  /// them; those that are under way, scheduled or wait for a retry have none. A call does little,
  /// in a transaction of its own.
  /// - Returns: `true` when there may be more.
  func clearNotifications(endedBefore limit: Date) async throws -> Bool
}
