package import Foundation

/// A process that works on a database, as others see it.
package struct StoreNode: Hashable, Sendable {
  /// The id that the database has assigned; a process that returns after its leases have ended gets
  /// another.
  package var id: Int64 = 0
  /// Usually the machine's host name.
  package var name: String
  /// The address on which it listens; empty when it does not.
  package var address = ""
  package var version = ""
  package var startedAt = Date.distantPast
  /// Seconds since its last heartbeat, by the clock of the database: for display, and for callers
  /// that cannot watch the node for a while.
  package var silence: TimeInterval = 0
  /// After so many seconds of silence others take over its work; heartbeats are five times as
  /// frequent.
  package var lease: TimeInterval
  /// Whether another node has seen no heartbeat for a lease. It does not return under its id.
  package var isDead = false

  package init(
    name: String, address: String = "", version: String = "",
    lease: TimeInterval = Self.usualLease
  ) {
    self.name = name
    self.address = address
    self.version = version
    self.lease = lease
  }

  package static let usualLease: TimeInterval = 10
  /// A quick estimate: where no other node is left to declare it dead, its silence must do. See
  /// ``PostgresHubStore/livingNodes()``.
  package var isAlive: Bool { !isDead && silence < lease }
}
