package import Foundation
package import NotificationHubs

/// A registration as stored (docs/protocol/rest.md, section 3.3).
package struct StoredRegistration: Hashable, Sendable {
  /// The store's number, by which lists are ordered.
  package let number: RegistrationID
  /// The id for clients: made by the hub, or chosen by the client that first wrote it.
  package let id: String
  package var draft: RegistrationDraft
  /// From 1; increases by one with each write.
  package var etag: Int64
  /// Whether it is derived from an installation, which determines its contents.
  package var isDerived: Bool

  package init(
    number: RegistrationID, id: String, draft: RegistrationDraft, etag: Int64, isDerived: Bool
  ) {
    self.number = number
    self.id = id
    self.draft = draft
    self.etag = etag
    self.isDerived = isDerived
  }
}

/// The registrations in a list (docs/protocol/rest.md, section 3.9).
package enum RegistrationQuery: Hashable, Sendable {
  case all
  /// Registrations with a tag, implicit ones included.
  case tag(Tag)
  /// Native and template registrations of one device.
  case device(RegistrationFilter)
}

/// A page of a list, in rising order of the numbers.
package struct RegistrationPage: Hashable, Sendable {
  package private(set) var registrations: [StoredRegistration] = []
  private var size = PageSize()
  /// Whether there are more after the last of these.
  package var hasMore = false
  /// Members of the page that cannot be read.
  package var unreadable: [UnreadableTarget] = []

  package init() {}

  package mutating func append(_ registration: StoredRegistration) {
    registrations.append(registration)
    size.add(registration.draft)
  }

  /// - Parameter limit: Maximum number of registrations.
  package func isFull(_ limit: Int) -> Bool { registrations.count >= limit || size.isReached }
}

/// The result of a conditional write.
package enum RegistrationWrite: Hashable, Sendable {
  case done(StoredRegistration)
  /// The condition requires an existing registration, and there is none.
  case missing
  /// The registration's etag differs.
  case stale
}

/// The registrations and installations that a handle belongs to.
package struct FoundDevices: Hashable, Sendable {
  package struct Item: Hashable, Sendable {
    package let stored: StoredRegistration
    /// The installation that it is derived from; `nil` when a client wrote it.
    package let installationID: String?
    /// The environment in which the next push to it is tried first.
    package let environment: PushEnvironment
    /// The time when it was last written, or confirmed unchanged.
    package let confirmedAt: Date

    package init(
      stored: StoredRegistration, installationID: String?, environment: PushEnvironment,
      confirmedAt: Date
    ) {
      self.stored = stored
      self.installationID = installationID
      self.environment = environment
      self.confirmedAt = confirmedAt
    }
  }

  package private(set) var installations: [Installation] = []
  /// In rising order of the numbers.
  package private(set) var registrations: [Item] = []
  private var size = PageSize()
  /// Whether there are more than were requested, or than one reply may contain (``PageSize``).
  package var hasMore = false
  /// The hosts of APNs behind the hub's credential; none without one.
  package var apnsHosts: [PushEnvironment: String] = [:]

  package init() {}

  /// Entries beyond the size limit are omitted.
  package mutating func append(_ installation: Installation) {
    if size.isReached {
      hasMore = true
      return
    }
    installations.append(installation)
    size.add(installation)
  }

  /// Entries beyond the size limit are omitted.
  package mutating func append(_ item: Item) {
    if size.isReached {
      hasMore = true
      return
    }
    registrations.append(item)
    size.add(item.stored.draft)
  }

  package mutating func sortInstallations() {
    installations.sort { $0.installationID < $1.installationID }
  }
}

extension RegistrationDraft {
  /// - Parameter registration: A validated registration.
  init(_ registration: Registration, expiresAt: Date?) {
    var kind = Kind.native
    if case .template(var template, let name) = registration.kind {
      // Its tags are those of the registration.
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
