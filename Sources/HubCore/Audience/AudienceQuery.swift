package import Foundation
package import NotificationHubs

/// The registrations that a notification reaches (docs/protocol/rest.md, section 5.9).
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
  /// Registrations that have expired by then are excluded.
  package var asOf: Date
  /// The notification of the audience: a target is a duplicate only of one that was in the audience
  /// from the start. `nil` for a query about the current state of the hub.
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
