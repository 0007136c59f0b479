public import Foundation
import Wire

/// The telemetry of a notification so far (docs/protocol/rest.md, section 5.8).
public struct NotificationTelemetry: NotificationWords, Hashable, Sendable {
  /// The state of a notification; values newer than this build are preserved.
  public struct State: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value on the wire.
    public let rawValue: String
    /// Creates a state from its wire value.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The value on the wire.
    public var description: String { rawValue }
    /// The hub has accepted the notification.
    public static let enqueued = State(rawValue: "Enqueued")
    /// The notification waits for its scheduled time.
    public static let scheduled = State(rawValue: "Scheduled")
    /// Delivery is in progress.
    public static let processing = State(rawValue: "Processing")
    /// Every target has an outcome.
    public static let completed = State(rawValue: "Completed")
    /// The tag expression matched no device.
    public static let noTargetFound = State(rawValue: "NoTargetFound")
    /// The hub gave up.
    public static let abandoned = State(rawValue: "Abandoned")
    /// The notification was cancelled or aborted.
    public static let canceled = State(rawValue: "Canceled")

    /// Whether the state is final.
    public var isFinal: Bool {
      [.completed, .noTargetFound, .abandoned, .canceled].contains(self)
    }
  }

  /// The id of the notification.
  public var notificationID: String
  /// The URL of the notification as given by the hub.
  public var location: String?
  /// The state of the notification.
  public var state: State
  /// The time at which the hub accepted the notification, in whole seconds; the other times are
  /// more precise.
  public var enqueueTime: Date?
  /// The time at which delivery began.
  public var startTime: Date?
  /// The time at which the notification ended; `nil` until then.
  public var endTime: Date?
  /// The time for which the notification was scheduled. Belfry only.
  public var dueTime: Date?
  /// The body that was sent.
  public var body: String?
  /// The tag expression; `nil` for a broadcast.
  public var tags: String?
  /// The send formats involved, such as `apple`, or `appletemplate` for templates.
  public var targetPlatforms: [String]
  /// The number of targets by platform and wire name of the outcome, including names newer than
  /// this build.
  public var outcomes: [PushPlatform: [String: Int]]
  /// The URL at which per-device errors can be read, if the service keeps them.
  public var pnsErrorDetailsURI: String?
  /// The title that devices show, as in ``NotificationSummary/title``. Belfry only.
  public var title: String?
  /// The text that devices show, as in ``NotificationSummary/text``. Belfry only.
  public var text: String?
  /// Whether ``title`` and ``text`` are what it says, or why they are missing. Belfry only.
  public var textState: NotificationSummary.TextState?

  /// Creates telemetry.
  public init(
    notificationID: String, location: String? = nil, state: State, enqueueTime: Date? = nil,
    startTime: Date? = nil, endTime: Date? = nil, dueTime: Date? = nil, body: String? = nil,
    tags: String? = nil, targetPlatforms: [String] = [],
    outcomes: [PushPlatform: [String: Int]] = [:],
    pnsErrorDetailsURI: String? = nil
  ) {
    self.notificationID = notificationID
    self.location = location
    self.state = state
    self.enqueueTime = enqueueTime
    self.startTime = startTime
    self.endTime = endTime
    self.dueTime = dueTime
    self.body = body
    self.tags = tags
    self.targetPlatforms = targetPlatforms
    self.outcomes = outcomes
    self.pnsErrorDetailsURI = pnsErrorDetailsURI
  }

  /// Returns the number of targets with this outcome, on one platform or on all.
  public func count(of outcome: NotificationOutcome, on platform: PushPlatform? = nil) -> Int {
    if let platform { return outcomes[platform]?[outcome.name] ?? 0 }
    return outcomes.values.reduce(0) { $0 + ($1[outcome.name] ?? 0) }
  }
}

extension NotificationTelemetry {
  /// The platforms whose counts come before `PnsErrorDetailsUri`, and those after it, in order
  /// (docs/protocol/rest.md, section 5.8).
  private static let platformsInOrder: (before: [PushPlatform], after: [PushPlatform]) = {
    let before: [PushPlatform] = [.apns, .mpns, .wns, .gcm, .adm]
    return (before, PushPlatform.allCases.filter { !before.contains($0) })
  }()

  /// The document as a hub returns it: one line, no declaration, elements in the order that clients
  /// rely on, without those that are unknown. Those that the original lacks come last.
  package var xml: String {
    var text = "<NotificationDetails xmlns=\"\(WireName.connectNamespace)\""
    text += " xmlns:i=\"\(WireName.schemaInstanceNamespace)\">"
    func element(_ name: String, _ value: String?) {
      if let value { text += "<\(name)>\(value.xmlEscaped)</\(name)>" }
    }
    element("NotificationId", notificationID)
    element("Location", location)
    element("State", state.rawValue)
    element("EnqueueTime", enqueueTime.map(WireDate.seconds))
    element("StartTime", startTime.map(WireDate.precise))
    element("EndTime", endTime.map(WireDate.precise))
    element("NotificationBody", body)
    element("Tags", tags)
    if !targetPlatforms.isEmpty {
      element("TargetPlatforms", targetPlatforms.joined(separator: ","))
    }
    for platform in Self.platformsInOrder.before { text += outcomesXML(platform) }
    element("PnsErrorDetailsUri", pnsErrorDetailsURI)
    for platform in Self.platformsInOrder.after { text += outcomesXML(platform) }
    element("DueTime", dueTime.map(WireDate.precise))
    element("Title", title)
    element("Text", self.text)
    element("TextState", textState?.rawValue)
    return text + "</NotificationDetails>"
  }

  private func outcomesXML(_ platform: PushPlatform) -> String {
    guard let counts = outcomes[platform], !counts.isEmpty else { return "" }
    // Sorted by the outcome's number, success first; unknown names come last.
    func rank(_ name: String) -> UInt8 { NotificationOutcome(name: name)?.rawValue ?? .max }
    let name = "\(platform.telemetryPrefix)OutcomeCounts"
    let items = counts.sorted { (rank($0.key), $0.key) < (rank($1.key), $1.key) }.map {
      "<Outcome><Name>\($0.key.xmlEscaped)</Name><Count>\($0.value)</Count></Outcome>"
    }
    return "<\(name)>\(items.joined())</\(name)>"
  }

  /// Decodes the document that a hub returns.
  package init(xml: Data) throws(WireFormatError) {
    guard let root = XMLNode.parse(xml), root.name == "NotificationDetails",
      let id = root["NotificationId"]?.text
    else { throw WireFormatError("The reply is no NotificationDetails document.") }
    self.init(
      notificationID: id, location: root["Location"]?.text,
      state: State(rawValue: root["State"]?.text ?? "Unknown"),
      enqueueTime: root["EnqueueTime"].flatMap { WireDate.parse($0.text) },
      startTime: root["StartTime"].flatMap { WireDate.parse($0.text) },
      endTime: root["EndTime"].flatMap { WireDate.parse($0.text) },
      dueTime: root["DueTime"].flatMap { WireDate.parse($0.text) },
      body: root["NotificationBody"]?.text, tags: root["Tags"]?.text,
      targetPlatforms: (root["TargetPlatforms"]?.text ?? "").split(separator: ",").map {
        $0.trimmingBlanks
      },
      pnsErrorDetailsURI: root["PnsErrorDetailsUri"]?.text)
    title = root["Title"]?.text
    text = root["Text"]?.text
    textState = (root["TextState"]?.text).map(NotificationSummary.TextState.init(rawValue:))
    for child in root.children where child.name.hasSuffix("OutcomeCounts") {
      let prefix = child.name.dropLast("OutcomeCounts".count).lowercased()
      // `Fcm` is an older name of the same counts.
      guard let platform = PushPlatform(rawValue: prefix == "fcm" ? "gcm" : prefix) else {
        continue
      }
      for outcome in child.children where outcome.name == "Outcome" {
        guard let name = outcome["Name"]?.text, let count = Int(outcome["Count"]?.text ?? "")
        else { continue }
        outcomes[platform, default: [:]][name, default: 0] &+= count
      }
    }
  }
}
