package import Foundation
package import NotificationHubs

/// Which installations a list has; what is `nil` does not matter.
package struct InstallationFilter: Hashable, Sendable {
  /// Carried by the installation itself, by a template or by a tile.
  package var tag: Tag?
  /// Letter case aside, as in the implicit tag of a user.
  package var userID: String?
  package var platform: PushPlatform?
  /// Whether nothing can reach it any more: its push channel is dead, or its time is over.
  package var isExpired: Bool?
  /// The moment by which times are judged.
  package var asOf: Date

  package init(
    tag: Tag? = nil, userID: String? = nil, platform: PushPlatform? = nil, isExpired: Bool? = nil,
    asOf: Date
  ) {
    self.tag = tag
    self.userID = userID
    self.platform = platform
    self.isExpired = isExpired
    self.asOf = asOf
  }

  package func matches(_ installation: Installation) -> Bool {
    if let platform, installation.platform != platform { return false }
    if let userID, installation.userID?.lowercased() != userID.lowercased() { return false }
    if let isExpired {
      let isOver = installation.expirationTime.map { $0 <= asOf } ?? false
      guard isExpired == (isOver || installation.pushChannelExpired) else { return false }
    }
    guard let tag else { return true }
    return installation.tags.contains(tag)
      || installation.templates.values.contains { $0.tags.contains(tag) }
      || installation.secondaryTiles.values.contains { tile in
        tile.tags.contains(tag) || tile.templates.values.contains { $0.tags.contains(tag) }
      }
  }
}

/// A part of a list of installations.
package struct InstallationPage: Sendable {
  package var installations: [Installation]
  /// The id after which the list goes on; `nil` at its end. A page may be short, or even empty, and
  /// yet not the last: looking for rare ones is done by stretches.
  package var next: String?

  package init(installations: [Installation] = [], next: String? = nil) {
    self.installations = installations
    self.next = next
  }
}

/// What template registrations are counted by.
package struct TemplateKey: Hashable, Sendable {
  package let platform: PushPlatform
  /// Empty when the registration names none.
  package let name: String

  package init(platform: PushPlatform, name: String) {
    self.platform = platform
    self.name = name
  }
}

/// Which notifications a list has; what is `nil` does not matter.
package struct NotificationFilter: Hashable, Sendable {
  package var states: Set<NotificationState>?
  package var kind: NotificationSummary.Kind?
  /// Named anywhere in the expression.
  package var tag: Tag?
  /// The earliest time: of acceptance or, in a list of schedules, of being due.
  package var from: Date?
  /// The time before which it must be.
  package var until: Date?

  package init(
    states: Set<NotificationState>? = nil, kind: NotificationSummary.Kind? = nil, tag: Tag? = nil,
    from: Date? = nil, until: Date? = nil
  ) {
    self.states = states
    self.kind = kind
    self.tag = tag
    self.from = from
    self.until = until
  }

  /// Whether state, kind and tag fit; times are for the store's index.
  ///
  /// - Parameter expression: What the notification is addressed with.
  package func matches(_ summary: NotificationSummary, _ expression: TagExpression?) -> Bool {
    if let states, !states.contains(where: { $0.rawValue == summary.state.rawValue }) {
      return false
    }
    if let kind, summary.kind != kind { return false }
    guard let tag else { return true }
    return expression?.names(tag) == true
  }
}

/// Where a list of notifications goes on: behind the one of this time and number.
package struct NotificationPosition: Hashable, Sendable {
  /// Milliseconds since 1970.
  package let time: Int64
  /// The store's own number of the notification.
  package let number: Int64

  package init(time: Int64, number: Int64) {
    self.time = time
    self.number = number
  }
}

/// A part of a list of notifications.
package struct NotificationPage: Sendable {
  package var notifications: [NotificationSummary]
  /// `nil` at the list's end. A page may be short, or even empty, and yet not the last: looking for
  /// rare ones is done by stretches.
  package var next: NotificationPosition?

  package init(notifications: [NotificationSummary] = [], next: NotificationPosition? = nil) {
    self.notifications = notifications
    self.next = next
  }
}

/// The two lists of notifications.
package enum NotificationOrder: Hashable, Sendable {
  /// All, the last accepted first.
  case newestFirst
  /// Those that still wait for their time, the soonest first.
  case scheduled
}

/// The part of a ``HubStore`` behind what Belfry offers beyond the original.
package protocol ExtensionStore: Sendable {
  /// The next installations after the one with the given id, which may be gone, in an order of the
  /// store's own; at most `limit`.
  func installations(
    _ filter: InstallationFilter, hub: Hub.ID, after: String?, limit: Int
  ) async throws -> InstallationPage
  /// The next notifications of a list, without payloads and devices; at most `limit`.
  func notifications(
    _ filter: NotificationFilter, in order: NotificationOrder, hub: Hub.ID,
    after: NotificationPosition?, limit: Int
  ) async throws -> NotificationPage
  /// The template registrations that a query of this kind reaches, by platform and template name.
  func templateCounts(_ query: AudienceQuery) async throws -> [TemplateKey: Int]
  /// Removes, in one transaction, a user's installations with their registrations, what is kept
  /// about these devices, the tags and templates that no other device has, and every notification
  /// that was for this user alone, by the user's tag, an installation's or one that goes.
  ///
  /// - Parameter userID: Letter case aside, as in the implicit tag of a user.
  func eraseUser(_ userID: String, hub: Hub.ID) async throws -> UserErasure
}

extension NotificationSummary.Kind {
  package init(isScheduled: Bool, isDirect: Bool, expression: TagExpression?) {
    if isScheduled {
      self = .schedule
    } else if isDirect {
      self = .direct
    } else {
      switch expression {
      case nil: self = .broadcast
      case .tag(let tag)? where tag.folded.hasPrefix("$installationid:"): self = .single
      default: self = .tag
      }
    }
  }
}

extension NotificationRequest.Format {
  /// The word of the header `ServiceBusNotification-Format`.
  package var word: String {
    switch self {
    case .template: WireName.templateFormat
    case .native(let platform): platform.sendFormat
    }
  }
}

extension TagExpression {
  /// Whether the tag stands anywhere in it, negated or not.
  package func names(_ tag: Tag) -> Bool {
    switch self {
    case .tag(let other): other == tag
    case .not(let operand): operand.names(tag)
    case .and(let left, let right), .or(let left, let right):
      left.names(tag) || right.names(tag)
    }
  }

  /// Whether it can reach nobody but who carries one of these tags, as far as its form tells: it is
  /// one of them, or narrows one down.
  package func isOnly(for tags: Set<Tag>) -> Bool {
    switch self {
    case .tag(let tag): tags.contains(tag)
    case .not: false
    case .and(let left, let right): left.isOnly(for: tags) || right.isOnly(for: tags)
    case .or(let left, let right): left.isOnly(for: tags) && right.isOnly(for: tags)
    }
  }
}
