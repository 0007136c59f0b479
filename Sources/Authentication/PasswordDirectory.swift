/// A directory of users' passwords.
package protocol PasswordDirectory: Sendable {
  /// Checks the user's password. May take long, and must take equally long for users that do not
  /// exist.
  ///
  /// - Parameters:
  ///   - site: The origin of the request (`ClientNetwork.site`); sites take turns.
  ///   - isKnown: Whether the user has signed in from there before; such users have reserved
  ///     capacity.
  /// - Returns: The user's ``fingerprint(of:)``, or `nil` if the password is wrong.
  /// - Throws: ``PasswordsBusy`` if too many checks are waiting.
  func check(
    _ password: String, of user: UserName, from site: String, isKnown: Bool
  ) async throws(PasswordsBusy) -> [UInt8]?

  /// A value that changes with the user's password; `nil` for an unknown user.
  func fingerprint(of user: UserName) async -> [UInt8]?
}

/// The error if too many passwords are waiting to be hashed.
package struct PasswordsBusy: Error {
  /// The delay in seconds before the next attempt.
  package let retryAfter: Int

  package init(retryAfter: Int) { self.retryAfter = retryAfter }
}
