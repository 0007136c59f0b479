/// Knows the passwords of users.
package protocol PasswordDirectory: Sendable {
  /// Whether this is the user's password. May take long, and must take equally long for users that
  /// do not exist.
  func accepts(_ password: String, of user: UserName) async -> Bool
}

/// The tutorials' rule: anyone who gives the user's name as password is that user. For demonstrations
/// only.
package struct DemoUsers: PasswordDirectory {
  package init() {}

  package func accepts(_ password: String, of user: UserName) async -> Bool {
    !password.isEmpty && password.lowercased() == user.text
  }
}
