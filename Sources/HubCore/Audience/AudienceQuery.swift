package import Foundation
package import NotificationHubs

/// Which registrations a notification reaches (docs/protocol/rest.md, section 5.9).
package struct AudienceQuery: Hashable, Sendable {
  /// The kind of registrations that a send addresses.
  package enum Kind: Hashable, Sendable {
    /// Native registrations of one platform.
    case native(PushPlatform)
    /// Template registrations of every platform.
    case template
  }

  package var hub: Hub.ID
  package var kind: Kind
  /// `nil` reaches every registration of the kind.
  package var expression: TagExpression?
  /// Registrations that have expired by then are left out.
  package var asOf: Date
  /// Whose audience it is: a target is a duplicate only of one that was in it from the start. `nil`
  /// for a question about the hub as it is now.
  package var notification: NotificationID?
  /// The part of the audience that is read; see ``WorkLease/part``.
  package var part = 0

  package init(
    hub: Hub.ID, kind: Kind, expression: TagExpression?, asOf: Date,
    notification: NotificationID? = nil
  ) {
    self.hub = hub
    self.kind = kind
    self.expression = expression
    self.asOf = asOf
    self.notification = notification
  }
}
