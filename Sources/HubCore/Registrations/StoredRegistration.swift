import Foundation
package import NotificationHubs

/// A registration as the store knows it (docs/protocol/rest.md, section 3.3).
package struct StoredRegistration: Hashable, Sendable {
  /// The store's number; lists go by it.
  package let number: RegistrationID
  /// What clients call it: made by the hub, or chosen by the client that first wrote it.
  package let id: String
  package var draft: RegistrationDraft
  /// From 1; one more with each write.
  package var etag: Int64
  /// An installation made it, and keeps it as the installation says.
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

/// Which registrations a list holds (docs/protocol/rest.md, section 3.9).
package enum RegistrationQuery: Hashable, Sendable {
  case all
  /// Those with a tag, implicit ones included.
  case tag(Tag)
  /// Native and template registrations of one device.
  case device(RegistrationFilter)
}

/// A run of a list, in rising order of the numbers.
package struct RegistrationPage: Hashable, Sendable {
  package private(set) var registrations: [StoredRegistration] = []
  private var size = PageSize()
  /// There are more after the last of these.
  package var hasMore = false
  /// What belongs among them and cannot be read.
  package var unreadable: [UnreadableTarget] = []

  package init() {}

  package mutating func append(_ registration: StoredRegistration) {
    registrations.append(registration)
    size.add(registration.draft)
  }

  /// - Parameter limit: The most registrations.
  package func isFull(_ limit: Int) -> Bool { registrations.count >= limit || size.isReached }
}

/// What became of a write that has a condition.
package enum RegistrationWrite: Hashable, Sendable {
  case done(StoredRegistration)
  /// The condition asks for a registration that exists, and there is none.
  case missing
  /// The registration's etag is another one.
  case stale
}

/// The registrations and installations that a handle belongs to.
package struct FoundDevices: Hashable, Sendable {
  package struct Item: Hashable, Sendable {
    package let stored: StoredRegistration
    /// The installation that made it; `nil` when a client wrote it.
    package let installationID: String?
    /// Where the next push to it goes first.
    package let environment: PushEnvironment

    package init(
      stored: StoredRegistration, installationID: String?, environment: PushEnvironment
    ) {
      self.stored = stored
      self.installationID = installationID
      self.environment = environment
    }
  }

  package private(set) var installations: [Installation] = []
  /// In rising order of the numbers.
  package private(set) var registrations: [Item] = []
  private var size = PageSize()
  /// There are more than were asked for, or than one answer takes (``PageSize``).
  package var hasMore = false
  /// The hosts of APNs behind the hub's credential; none without one.
  package var apnsHosts: [PushEnvironment: String] = [:]

  package init() {}

  /// What does not fit any more is left out.
  package mutating func append(_ installation: Installation) {
    if size.isReached {
      hasMore = true
      return
    }
    installations.append(installation)
    size.add(installation)
  }

  /// What does not fit any more is left out.
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
