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

  /// What the row has for ``fingerprint``: 0, which no write has, where the document names templates
  /// that no registration has, as that of a dead handle does.
  var storedFingerprint: Int64 {
    let named = installation.secondaryTiles.values.reduce(installation.templates.count) {
      $0 + $1.templates.count
    }
    return named == registrations.count { $0.template != nil } ? fingerprint : 0
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
    let everyone: AudienceQuery.Kind
    switch draft.kind {
    case .native:
      template = nil
      key = RegistrationKey(isNative: true, name: nil, tile: draft.secondaryTileName)
      everyone = .native(draft.platform)
    case .template(let template, let name):
      self.template = template
      key = RegistrationKey(isNative: false, name: name, tile: draft.secondaryTileName)
      everyone = .template
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
    tags = Self.tags(draft.tags, kind: everyone, hub: hub)
    expiresAt = draft.expiresAt?.milliseconds
  }

  /// What has rows of its own of a registration's tags, and its kind.
  static func tags(_ tags: [Tag], kind: AudienceQuery.Kind, hub: Hub.ID) -> [TagKey] {
    var keys: [TagKey] = [.everyone(kind, hub: hub)]
    for tag in tags {
      let folded = tag.folded
      guard ImplicitTag(folded: folded) == nil else { continue }
      let key = TagKey.plain(folded, hub: hub)
      if !keys.contains(key) { keys.append(key) }
    }
    return keys
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
