package import Foundation

/// The session of an operator at the portal.
package struct OperatorSession: Hashable, Sendable {
  /// A digest of the value that the browser presents: a reader of the store cannot sign in with it.
  package let id: [UInt8]
  /// `UserName.key`.
  package let user: String
  /// The fingerprint of the user's line in the operator file; a changed line ends the session.
  package let fingerprint: [UInt8]
  package let startedAt: Date
  /// The time of the last request, give or take a minute.
  package var seenAt: Date
  /// The time when the user last authenticated.
  package var confirmedAt: Date

  package init(
    id: [UInt8], user: String, fingerprint: [UInt8], startedAt: Date, seenAt: Date,
    confirmedAt: Date
  ) {
    self.id = id
    self.user = user
    self.fingerprint = fingerprint
    self.startedAt = startedAt
    self.seenAt = seenAt
    self.confirmedAt = confirmedAt
  }
}

/// Sessions of operators at the portal. They are in the store, so that they survive a restart and
/// are shared by every process on the same database.
package protocol OperatorSessionStore: Sendable {
  /// - Parameters:
  ///   - limit: Sessions last seen before this time are deleted.
  ///   - most: Maximum number of sessions of a user; the longest unseen are deleted.
  func addSession(_ session: OperatorSession, forgetting limit: Date, keeping most: Int)
    async throws
  func session(_ id: [UInt8]) async throws -> OperatorSession?
  /// Updates the two times; a session that has ended stays ended.
  func updateSession(_ session: OperatorSession) async throws
  func endSession(_ id: [UInt8]) async throws
}
