public import Foundation
package import Wire

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

extension NotificationExplanation {
  package var json: [UInt8] {
    JSONWriter.object(capacity: 2048) { writer in
      writer.member("notificationId", notificationID)
      writer.member("state", state.rawValue)
      writer.member("verdict", verdict.rawValue)
      writer.member("text", text)
      writer.objects("facts", facts) { $1.write(to: &$0) }
      writer.objects("registrations", candidates) { $1.write(to: &$0) }
    }
  }

  /// Reads the reply.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let id = root.text("notificationId"), let verdict = root.text("verdict")
    else { throw WireFormatError("The reply explains no notification.") }
    self.init(
      notificationID: id, state: .init(rawValue: root.text("state") ?? ""),
      verdict: Verdict(rawValue: verdict), text: root.text("text") ?? "",
      facts: root.items("facts").map(Fact.init),
      candidates: root.items("registrations").map(Candidate.init))
  }
}

extension NotificationExplanation.Fact {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("name", name)
    writer.member("holds", holds)
    writer.member("text", text)
  }

  fileprivate init(_ value: JSONValue) {
    self.init(value.text("name") ?? "", value.flag("holds"), value.text("text") ?? "")
  }
}

extension NotificationExplanation.Term {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("expression", text)
    writer.member("holds", holds)
    if !parts.isEmpty { writer.objects("parts", parts) { $1.write(to: &$0) } }
  }

  /// The parser bounds the depth.
  fileprivate init(_ value: JSONValue) {
    self.init(
      text: value.text("expression") ?? "", holds: value.flag("holds") ?? false,
      parts: value.items("parts").map(Self.init))
  }
}

extension NotificationExplanation.Rendering {
  package func write(to writer: inout JSONWriter) {
    writer.member("payload", payload)
    writer.member("bytes", bytes)
    writer.member("limit", limit)
    writer.array("missingProperties", missing) { $0.string($1) }
  }

  package init(_ value: JSONValue) {
    self.init(
      payload: value.text("payload") ?? "", bytes: value.count("bytes") ?? 0,
      limit: value.count("limit"),
      missing: value.items("missingProperties").compactMap(\.scalarText))
  }
}

extension NotificationExplanation.Candidate {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("registrationId", registrationID)
    writer.member("platform", platform?.rawValue)
    writer.member("template", template)
    writer.member("verdict", verdict.rawValue)
    writer.member("text", text)
    writer.objects("facts", facts) { $1.write(to: &$0) }
    if let expression { writer.object("expression") { expression.write(to: &$0) } }
    if let rendering { writer.object("rendering") { rendering.write(to: &$0) } }
    if let outcome { writer.object("outcome") { outcome.write(to: &$0) } }
    writer.member("pushId", pushID)
    writer.member("nextTry", nextTry)
  }

  fileprivate init(_ value: JSONValue) {
    self.init(
      registrationID: value.text("registrationId"), platform: value.platform,
      template: value.text("template"), verdict: .init(rawValue: value.text("verdict") ?? ""),
      text: value.text("text") ?? "",
      facts: value.items("facts").map(NotificationExplanation.Fact.init))
    expression = value["expression"].map(NotificationExplanation.Term.init)
    rendering = value["rendering"].map(NotificationExplanation.Rendering.init)
    outcome = value["outcome"].flatMap(DeviceOutcome.init)
    pushID = value.text("pushId")
    nextTry = value.date("nextTry")
  }
}
