package import Foundation

/// A hub as its owner describes it (docs/protocol/rest.md, section 8.1).
package struct HubChange: Hashable, Sendable {
  /// An access policy as described by its owner.
  package struct Policy: Hashable, Sendable {
    package var name: String
    package var rights: AccessRights
    /// `nil` keeps the key of an existing policy with that name, or generates a random one.
    package var primaryKey: String?
    package var secondaryKey: String?

    package init(
      name: String, rights: AccessRights, primaryKey: String? = nil, secondaryKey: String? = nil
    ) {
      self.name = name
      self.rights = rights
      self.primaryKey = primaryKey
      self.secondaryKey = secondaryKey
    }
  }

  /// In seconds; `nil` is forever.
  package var registrationTTL: TimeInterval?
  package var isDisabled: Bool
  package var userMetadata: String?
  /// `nil` leaves the existing ones; a new hub gets its default policies.
  package var policies: [Policy]?
  /// `nil` leaves the existing ones.
  package var credentials: [PushCredential]?

  package init(
    registrationTTL: TimeInterval? = nil, isDisabled: Bool = false, userMetadata: String? = nil,
    policies: [Policy]? = nil, credentials: [PushCredential]? = nil
  ) {
    self.registrationTTL = registrationTTL
    self.isDisabled = isDisabled
    self.userMetadata = userMetadata
    self.policies = policies
    self.credentials = credentials
  }

  /// Maximum length of the metadata, in characters (docs/protocol/rest.md, section 9).
  package static let metadataLimit = 1024
}

extension HubChange {
  /// - Throws: 400 for values that are not allowed.
  func check() throws(HubFailure) {
    if let registrationTTL, !(registrationTTL >= HubService.minimumRegistrationTTL) {
      throw HubFailure(status: 400, message: "The registration TTL must be at least one day")
    }
    if let userMetadata, userMetadata.count > Self.metadataLimit {
      throw HubFailure(
        status: 400,
        message: "The user metadata has more than \(Self.metadataLimit) characters")
    }
    if let credentials, Set(credentials.map(\.platform)).count < credentials.count {
      throw HubFailure(status: 400, message: "A hub has one credential of each platform")
    }
  }

  /// The requested policies, with missing keys taken from the existing ones.
  func policies(
    present: [AccessPolicy], at now: Date, random: HubRandom
  ) throws(HubFailure) -> [AccessPolicy]? {
    guard let policies else { return nil }
    var all: [AccessPolicy] = []
    for wanted in policies {
      let old = present.first { $0.name == wanted.name }
      let new = try AccessPolicy.new(
        named: wanted.name, rights: wanted.rights,
        primaryKey: wanted.primaryKey ?? old?.primaryKey,
        secondaryKey: wanted.secondaryKey ?? old?.secondaryKey, at: now, random: random)
      guard let old else {
        all.append(new)
        continue
      }
      let isSame =
        old.rights == new.rights && old.primaryKey == new.primaryKey
        && old.secondaryKey == new.secondaryKey
      all.append(
        AccessPolicy(
          name: new.name, rights: new.rights, primaryKey: new.primaryKey,
          secondaryKey: new.secondaryKey, createdAt: old.createdAt,
          modifiedAt: isSame ? old.modifiedAt : now))
    }
    try Self.checkCount(all)
    return all
  }

  static func checkCount(_ policies: [AccessPolicy]) throws(HubFailure) {
    guard policies.count <= AccessPolicy.countLimit,
      Set(policies.map(\.name)).count == policies.count
    else {
      throw HubFailure(
        status: 400,
        message: "A hub has at most \(AccessPolicy.countLimit) access policies, each with its own "
          + "name")
    }
  }
}
