public import Foundation

/// Why a device did or did not get a notification: Belfry's answer to
/// `GET /{hub}/messages/{id}/explain`. The texts are for people, the codes for programs.
public struct NotificationExplanation: Hashable, Sendable {
  /// What it comes to.
  public struct Verdict: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The push service took the push, as far as the hub knows.
    public static let delivered = Verdict(rawValue: "delivered")
    /// The push service, or the hub, said no for good.
    public static let failed = Verdict(rawValue: "failed")
    /// It will be tried again.
    public static let retrying = Verdict(rawValue: "retrying")
    /// Another registration with the same handle stands in for this one.
    public static let duplicate = Verdict(rawValue: "duplicate")
    /// Its turn has not come yet.
    public static let waiting = Verdict(rawValue: "waiting")
    public static let scheduled = Verdict(rawValue: "scheduled")
    public static let canceled = Verdict(rawValue: "canceled")
    /// The tag expression is false for the device's tags.
    public static let tagsDiffer = Verdict(rawValue: "tags-differ")
    /// A send of this kind does not go to a registration of that kind.
    public static let notAddressed = Verdict(rawValue: "not-addressed")
    /// Its time was over.
    public static let expired = Verdict(rawValue: "expired")
    /// It came after the notification.
    public static let tooLate = Verdict(rawValue: "too-late")
    /// There is no such device, and nothing is kept about it.
    public static let noDevice = Verdict(rawValue: "no-device")
    /// What was kept does not tell.
    public static let unknown = Verdict(rawValue: "unknown")
  }

  /// One fact on the way to the verdict.
  public struct Fact: Hashable, Sendable {
    /// A short word: `kind`, `tags`, `size`.
    public var name: String
    /// Whether it speaks for the delivery; `nil` for what is neither.
    public var holds: Bool?
    public var text: String

    public init(_ name: String, _ holds: Bool?, _ text: String) {
      self.name = name
      self.holds = holds
      self.text = text
    }
  }

  /// A part of the tag expression and its value for the device.
  public struct Term: Hashable, Sendable {
    /// In the expression's own form: `news && !muted`.
    public var text: String
    public var holds: Bool
    /// Empty for a tag.
    public var parts: [Term]

    public init(text: String, holds: Bool, parts: [Term]) {
      self.text = text
      self.holds = holds
      self.parts = parts
    }
  }

  /// What the push service was, or would be, given.
  public struct Rendering: Hashable, Sendable {
    public var payload: String
    /// Of the payload, in UTF-8.
    public var bytes: Int
    /// The most the push service takes; `nil` when nobody knows.
    public var limit: Int?
    /// Properties that the template names and neither message nor device has.
    public var missing: [String]

    public init(payload: String, bytes: Int, limit: Int?, missing: [String]) {
      self.payload = payload
      self.bytes = bytes
      self.limit = limit
      self.missing = missing
    }
  }

  /// One of the device's registrations.
  public struct Candidate: Hashable, Sendable {
    public var registrationID: String?
    public var platform: PushPlatform?
    /// The template's name, empty when it has none; `nil` for a native registration.
    public var template: String?
    public var verdict: Verdict
    public var text: String
    public var facts: [Fact]
    /// `nil` for a notification to everyone.
    public var expression: Term?
    public var rendering: Rendering?
    /// What the push service said last; `nil` when nothing is kept.
    public var outcome: DeviceOutcome?
    /// The id of the push; APNs knows it as `apns-id`.
    public var pushID: String?
    public var nextTry: Date?

    public init(
      registrationID: String?, platform: PushPlatform?, template: String?, verdict: Verdict,
      text: String, facts: [Fact] = []
    ) {
      self.registrationID = registrationID
      self.platform = platform
      self.template = template
      self.verdict = verdict
      self.text = text
      self.facts = facts
    }
  }

  public var notificationID: String
  public var state: NotificationTelemetry.State
  public var verdict: Verdict
  public var text: String
  /// About the notification and the device as a whole.
  public var facts: [Fact]
  public var candidates: [Candidate]

  public init(
    notificationID: String, state: NotificationTelemetry.State, verdict: Verdict, text: String,
    facts: [Fact], candidates: [Candidate]
  ) {
    self.notificationID = notificationID
    self.state = state
    self.verdict = verdict
    self.text = text
    self.facts = facts
    self.candidates = candidates
  }
}
