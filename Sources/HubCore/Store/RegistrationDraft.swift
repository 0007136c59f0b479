package import Foundation
package import NotificationHubs

/// One addressable target as it is written to the store: native, or one template
/// (spec `rest-api.md` 3.1 and 4.6).
package struct RegistrationDraft: Hashable, Sendable {
  /// What a registration can be sent.
  package enum Kind: Hashable, Sendable {
    /// Native sends of its platform.
    case native
    /// Template sends; the name is that of the template, `nil` when it has none.
    case template(PushTemplate, name: String?)
  }

  package var kind: Kind
  package var platform: PushPlatform
  /// Where the push service reaches the device, in its stored form: Apple tokens in upper case.
  package var channel: PushChannel
  /// With the implicit tags, in the order of the wire.
  package var tags: [Tag]
  package var pushVariables: [String: String]
  /// `nil` is never.
  package var expiresAt: Date?
  /// The secondary tile it belongs to (Windows only).
  package var secondaryTileName: String?

  package init(
    kind: Kind, platform: PushPlatform, channel: PushChannel, tags: [Tag] = [],
    pushVariables: [String: String] = [:], expiresAt: Date? = nil,
    secondaryTileName: String? = nil
  ) {
    self.kind = kind
    self.platform = platform
    self.channel = channel
    self.tags = tags
    self.pushVariables = pushVariables
    self.expiresAt = expiresAt
    self.secondaryTileName = secondaryTileName
  }
}

/// The store's number for a registration; grows with every new one, so it also orders pages.
package typealias RegistrationID = Int64
