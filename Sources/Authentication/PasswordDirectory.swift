/// Knows the passwords of users.
package protocol PasswordDirectory: Sendable {
  /// Whether this is the user's password. May take long, and must take equally long for users that
  /// do not exist.
  ///
  /// - Parameters:
  ///   - site: Where the request comes from (`ClientNetwork.site`); sites take turns.
  ///   - isKnown: Whether the user has signed in from there before: others leave room for those.
  /// - Returns: The user's ``fingerprint(of:)``, or `nil` when it is not the password.
  /// - Throws: ``PasswordsBusy`` when too many wait already.
  func check(
    _ password: String, of user: UserName, from site: String, isKnown: Bool
  ) async throws(PasswordsBusy) -> [UInt8]?

  /// What changes with the user's password; `nil` for a user who does not exist.
  func fingerprint(of user: UserName) async -> [UInt8]?
}

/// Too many passwords wait to be hashed.
package struct PasswordsBusy: Error {
  /// Seconds.
  package let retryAfter: Int

  package init(retryAfter: Int) { self.retryAfter = retryAfter }
}
