package import Foundation

/// The part of a ``HubStore`` that gives room back.
package protocol StoreClearing: Sendable {
  /// Deletes some of what nobody can see any more: devices and registrations whose time was over
  /// by `limit`, and what deleted hubs have left behind. A call does little, in a transaction of
  /// its own, so that writers do not wait for it.
  /// - Returns: `true` when there may be more.
  func clear(expiredBy limit: Date) async throws -> Bool
}
