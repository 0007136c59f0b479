package import NotificationHubs

/// One registration that a notification goes to. Plain data without references of its own: a
/// million of them pass through a send, so data of variable length is in the page.
package struct Target: Sendable {
  package let registration: RegistrationID
  /// The position of the handle in ``TargetPage/handles``.
  package let handle: Range<Int>
  package let platform: PushPlatform
  /// Index into ``TargetPage/templates``; -1 for a native registration.
  package let template: Int32
  /// Index into ``TargetPage/pushVariables``; -1 when it has none.
  package let variables: Int32
  /// When the handle was last written or confirmed, in milliseconds since 1970.
  package let confirmedAt: Int64
  /// Whether another target of the same send has the same handle and a smaller number, or at FCM
  /// the same installation id and was written later: this one is `Skipped` (native sends only).
  package var isDuplicate: Bool
  /// The environment in which a push to the handle has last succeeded.
  package var environment: PushEnvironment

  package init(
    registration: RegistrationID, handle: Range<Int>, platform: PushPlatform, template: Int32,
    variables: Int32, confirmedAt: Int64, isDuplicate: Bool, environment: PushEnvironment = .own
  ) {
    self.registration = registration
    self.handle = handle
    self.platform = platform
    self.template = template
    self.variables = variables
    self.confirmedAt = confirmedAt
    self.isDuplicate = isDuplicate
    self.environment = environment
  }
}

/// A stored template as a page refers to it.
package struct StoredTemplate: Hashable, Sendable {
  /// The store's number of the template body, headers and expiry taken together; the same for all
  /// registrations that share them, so the compiled form can be cached by this number.
  package let id: Int64
  package let template: PushTemplate

  package init(id: Int64, template: PushTemplate) {
    self.id = id
    self.template = template
  }
}

/// A registration whose row cannot be read.
package struct UnreadableTarget: Hashable, Sendable {
  package let registration: RegistrationID
  /// `nil` when the platform itself cannot be read.
  package let platform: PushPlatform?
  /// A description for an operator, without personal data from the row.
  package let reason: String

  package init(registration: RegistrationID, platform: PushPlatform?, reason: String) {
    self.registration = registration
    self.platform = platform
    self.reason = reason
  }
}

/// Another registration of a target's device, under another handle: FCM identifies an installation
/// by its id and by the tokens that begin with it.
package struct HandleTwin: Sendable {
  package let registration: RegistrationID
  /// The position of its handle in ``TargetPage/handles``.
  package let handle: Range<Int>

  package init(registration: RegistrationID, handle: Range<Int>) {
    self.registration = registration
    self.handle = handle
  }
}

/// A run of targets in rising order of their number.
package struct TargetPage: Sendable {
  package var targets: [Target]
  /// The handles' UTF-8 text, concatenated. A Web Push subscription is stored as `endpoint`, line
  /// feed, `p256dh`, line feed, `auth`.
  package var handles: [UInt8]
  package var templates: [StoredTemplate]
  package var pushVariables: [[String: String]]
  /// The other registrations of a target's device, which are `Skipped` for it: those written later
  /// first, and at most ``twinLimit``. Only for pages of an audience, and for native sends.
  package var twins: [RegistrationID: [HandleTwin]] = [:]
  /// Members of the audience for which no push can be made.
  package var unreadable: [UnreadableTarget] = []
  /// The number after which the next page starts; `nil` when this was the last.
  package var next: RegistrationID?
  /// A device has two or three handles; a client that invents more costs no more than this per
  /// send.
  package static let twinLimit = 16
  /// The store's state before the page was read: later writes of a registration compare as later.
  /// No clock is involved.
  package var revision = StoreVersion.oldest

  package init(
    targets: [Target] = [], handles: [UInt8] = [], templates: [StoredTemplate] = [],
    pushVariables: [[String: String]] = [], next: RegistrationID? = nil
  ) {
    self.targets = targets
    self.handles = handles
    self.templates = templates
    self.pushVariables = pushVariables
    self.next = next
  }
}
