import Foundation
import HubCore
import NotificationHubs

/// An installation with all that can be computed before the writing thread has its turn.
struct PreparedInstallation: Sendable {
  let installation: Installation
  let hub: Hub.ID
  let idHash: Int64
  let userHash: Int64?
  let fingerprint: Int64
  let registrations: [PreparedRegistration]
  /// Milliseconds since 1970.
  let at: Int64

  init(_ installation: Installation, registrations: [RegistrationDraft], hub: Hub.ID, at: Date) {
    self.installation = installation
    self.hub = hub
    idHash = Self.hash(installation.installationID.lowercased())
    userHash = installation.userID.map { Self.hash($0.lowercased()) }
    fingerprint = InstallationDocument.fingerprint(of: installation, registrations: registrations)
    self.registrations = registrations.map { PreparedRegistration($0, hub: hub) }
    self.at = at.milliseconds
  }

  /// The value of `id_hash` or `user_hash` for an id in lower case.
  static func hash(_ folded: String) -> Int64 {
    var hash = StableHash()
    hash.combine(folded.utf8)
    return hash.value
  }
}

/// A registration as its row will have it, but for what only the database knows.
struct PreparedRegistration: Sendable {
  /// `nil` is native.
  let template: PushTemplate?
  let key: RegistrationKey
  let platform: Int64
  let handle: String
  let handleHash: Int64
  let variables: [UInt8]?
  /// Its plain tags and its kind.
  let tags: [TagKey]
  let expiresAt: Int64?

  init(_ draft: RegistrationDraft, hub: Hub.ID) {
    let everyone: TagKey
    switch draft.kind {
    case .native:
      template = nil
      key = RegistrationKey(isNative: true, name: nil, tile: draft.secondaryTileName)
      everyone = .everyone(.native(draft.platform), hub: hub)
    case .template(let template, let name):
      self.template = template
      key = RegistrationKey(isNative: false, name: name, tile: draft.secondaryTileName)
      everyone = .everyone(.template, hub: hub)
    }
    platform = draft.platform.code
    handle = draft.channel.stored
    handleHash = Self.hash(of: draft.channel.handle, platform: draft.platform.code, hub: hub)
    if draft.pushVariables.isEmpty {
      variables = nil
    } else {
      var writer = ByteWriter()
      writer.write(draft.pushVariables)
      variables = writer.bytes
    }
    var tags = [everyone]
    for tag in draft.tags {
      let folded = tag.folded
      guard ImplicitTag(folded: folded) == nil else { continue }
      let key = TagKey.plain(folded, hub: hub)
      if !tags.contains(key) { tags.append(key) }
    }
    self.tags = tags
    expiresAt = draft.expiresAt?.milliseconds
  }

  /// The value of `handle_hash`: equal for the same device at the same push service of a hub.
  static func hash(of identity: String, platform: Int64, hub: Hub.ID) -> Int64 {
    var hash = StableHash()
    hash.combine(hub)
    hash.combine(platform)
    hash.combine(identity.utf8)
    return hash.value
  }
}

/// What makes a registration the same one of its installation from write to write.
struct RegistrationKey: Hashable, Sendable {
  let isNative: Bool
  /// The template's.
  let name: String?
  /// The secondary tile's.
  let tile: String?
}
