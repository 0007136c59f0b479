package import Foundation

/// A secure notification as the backend keeps it.
package struct StoredMessage: Hashable, Sendable {
  /// 22 characters of base64url: 128 random bits, so that nobody guesses one.
  package let id: String
  package let owner: UserName
  package let createdAt: Date
  package let expiresAt: Date
  /// The payload goes with the first reading.
  package let isReadOnce: Bool
  /// The first reading; `nil` before it.
  package let readAt: Date?
}

/// What came of asking for a message.
enum MessageReading: Hashable, Sendable {
  /// - Parameter payload: `nil` when it was to be read once and has been.
  case found(StoredMessage, payload: String?)
  /// There is none, it is somebody else's, or its time is over.
  case none
}

/// A device that a user has registered through the backend.
package struct StoredDevice: Hashable, Sendable {
  package let id: String
  package let isInstallation: Bool
  /// A word of `PushPlatform`.
  package let platform: String
  package let sealingKey: String?
}

/// One line about who asked for what.
package struct AuditLine: Hashable, Sendable {
  package let at: Date
  /// A ``UserName/key``, or who it was in other words.
  package let actor: String
  /// `sign in`, `refresh`, `revoke`, `hub token`, `create`, `send`, `read`, `list`, `delete`,
  /// `register`, `unregister`, `detached`, `erase`.
  package let action: String
  /// The id of a message or device, or a user's name.
  package let subject: String
  /// `done`, or why not.
  package let outcome: String
  package let address: String

  package init(
    at: Date, actor: String, action: String, subject: String, outcome: String, address: String
  ) {
    self.at = at
    self.actor = actor
    self.action = action
    self.subject = subject
    self.outcome = outcome
    self.address = address
  }
}
