package import Foundation

/// Somebody who is signed in at the portal.
package struct OperatorSession: Hashable, Sendable {
  /// A digest of what the browser shows: who reads the store cannot sign in with it.
  package let id: [UInt8]
  /// `UserName.key`.
  package let user: String
  /// What the user's line in the operator file was made of; another one ends the session.
  package let fingerprint: [UInt8]
  package let startedAt: Date
  /// The last request, give or take a minute.
  package var seenAt: Date
  /// When the user has last shown who they are.
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

/// Who is signed in at the portal. In the store, so that it outlives a restart and every process on
/// the same database knows it.
package protocol OperatorSessionStore: Sendable {
  /// - Parameters:
  ///   - limit: Sessions seen last before that go.
  ///   - most: How many of a user stay; the longest unseen go.
  func addSession(_ session: OperatorSession, forgetting limit: Date, keeping most: Int)
    async throws
  func session(_ id: [UInt8]) async throws -> OperatorSession?
  /// Writes the two times; a session that has ended stays so.
  func updateSession(_ session: OperatorSession) async throws
  func endSession(_ id: [UInt8]) async throws
}
