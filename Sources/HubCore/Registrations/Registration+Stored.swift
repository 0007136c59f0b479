import Foundation
package import NotificationHubs

extension RegistrationDraft {
  /// - Parameter registration: Checked already.
  init(_ registration: Registration, expiresAt: Date?) {
    var kind = Kind.native
    if case .template(var template, let name) = registration.kind {
      // Those of the registration count.
      template.tags = []
      kind = .template(template, name: name)
    }
    self.init(
      kind: kind, platform: registration.platform, channel: registration.channel,
      tags: registration.tags, pushVariables: registration.pushVariables, expiresAt: expiresAt,
      secondaryTileName: registration.secondaryTileName)
  }
}

extension Registration {
  /// The registration as a client sees it.
  package init(_ stored: StoredRegistration) {
    let draft = stored.draft
    let kind: Kind =
      switch draft.kind {
      case .native: .native
      case .template(let template, let name): .template(template, name: name)
      }
    self.init(
      platform: draft.platform, channel: draft.channel, kind: kind, tags: draft.tags,
      pushVariables: draft.pushVariables, secondaryTileName: draft.secondaryTileName,
      registrationID: stored.id, etag: String(stored.etag), expirationTime: draft.expiresAt)
  }
}
