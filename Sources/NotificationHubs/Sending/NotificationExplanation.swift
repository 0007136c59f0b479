public import Foundation
package import Wire

/// The reasons why a device did or did not get a notification: Belfry's reply to `GET
/// /{hub}/messages/{id}/explain`. The texts are for people, the codes for programs.
public struct NotificationExplanation: Hashable, Sendable {
  /// The conclusion.
  public struct Verdict: RawRepresentable, Hashable, Sendable {
    /// The value on the wire.
    public let rawValue: String
    /// Creates a verdict from its wire value.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The push service accepted the push, as far as the hub knows.
    public static let delivered = Verdict(rawValue: "delivered")
    /// The push service or the hub rejected the push permanently.
    public static let failed = Verdict(rawValue: "failed")
    /// The push will be retried.
    public static let retrying = Verdict(rawValue: "retrying")
    /// The push went to another registration with the same handle.
    public static let duplicate = Verdict(rawValue: "duplicate")
    /// The device's turn has not come yet.
    public static let waiting = Verdict(rawValue: "waiting")
    /// The notification is scheduled for later.
    public static let scheduled = Verdict(rawValue: "scheduled")
    /// The scheduled notification was cancelled.
    public static let canceled = Verdict(rawValue: "canceled")
    /// The tag expression is false for the device's tags.
    public static let tagsDiffer = Verdict(rawValue: "tags-differ")
    /// The send does not address registrations of this kind.
    public static let notAddressed = Verdict(rawValue: "not-addressed")
    /// The notification expired before the device's turn.
    public static let expired = Verdict(rawValue: "expired")
    /// The device registered after the notification was sent.
    public static let tooLate = Verdict(rawValue: "too-late")
    /// The device does not exist, and no record of it is kept.
    public static let noDevice = Verdict(rawValue: "no-device")
    /// The records that are kept do not tell.
    public static let unknown = Verdict(rawValue: "unknown")
  }

  /// A fact that contributes to the verdict.
  public struct Fact: Hashable, Sendable {
    /// A short code, such as `kind`, `tags` or `size`.
    public var name: String
    /// Whether the fact favors delivery; `nil` if it is neutral.
    public var holds: Bool?
    /// An explanation for people.
    public var text: String

    /// Creates a fact.
    public init(_ name: String, _ holds: Bool?, _ text: String) {
      self.name = name
      self.holds = holds
      self.text = text
    }
  }

  /// A part of the tag expression with its value for the device.
  public struct Term: Hashable, Sendable {
    /// The part in the syntax of tag expressions, such as `news && !muted`.
    public var text: String
    /// The value for the device.
    public var holds: Bool
    /// The operands; empty for a tag.
    public var parts: [Term]

    /// Creates a term.
    public init(text: String, holds: Bool, parts: [Term]) {
      self.text = text
      self.holds = holds
      self.parts = parts
    }
  }

  /// The payload that the push service got or would get.
  public struct Rendering: Hashable, Sendable {
    /// The payload as text.
    public var payload: String
    /// The size of the payload in UTF-8, in bytes.
    public var bytes: Int
    /// The maximum size that the push service accepts, in bytes; `nil` if it is unknown.
    public var limit: Int?
    /// Properties that the template uses but neither the message nor the device has.
    public var missing: [String]

    /// Creates a rendering.
    public init(payload: String, bytes: Int, limit: Int?, missing: [String]) {
      self.payload = payload
      self.bytes = bytes
      self.limit = limit
      self.missing = missing
    }
  }

  /// One of the device's registrations.
  public struct Candidate: Hashable, Sendable {
    /// The id of the registration.
    public var registrationID: String?
    /// The platform of the registration.
    public var platform: PushPlatform?
    /// The template's name, empty when it has none; `nil` for a native registration.
    public var template: String?
    /// The conclusion for this registration.
    public var verdict: Verdict
    /// The conclusion in words.
    public var text: String
    /// The facts about this registration.
    public var facts: [Fact]
    /// The tag expression; `nil` for a broadcast.
    public var expression: Term?
    /// The payload, if it could be rendered.
    public var rendering: Rendering?
    /// The last response of the push service; `nil` if none is recorded.
    public var outcome: DeviceOutcome?
    /// The id of the push; for APNs, its `apns-id`.
    public var pushID: String?
    /// The time of the next attempt, if there will be one.
    public var nextTry: Date?

    /// Creates a candidate without expression, rendering and outcome.
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

  /// The id of the notification.
  public var notificationID: String
  /// The state of the notification.
  public var state: NotificationTelemetry.State
  /// The conclusion for the device as a whole.
  public var verdict: Verdict
  /// The conclusion in words.
  public var text: String
  /// The facts about the notification and the device as a whole.
  public var facts: [Fact]
  /// The device's registrations.
  public var candidates: [Candidate]

  /// Creates an explanation.
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

  /// Decodes the reply.
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

  /// The JSON parser limits the depth of this recursion.
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
