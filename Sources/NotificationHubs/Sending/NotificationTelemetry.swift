public import Foundation
import Wire

/// What became of a notification so far (docs/protocol/rest.md, section 5.8).
public struct NotificationTelemetry: Hashable, Sendable {
  /// Where a notification stands; a word newer than this build survives.
  public struct State: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
    /// Accepted.
    public static let enqueued = State(rawValue: "Enqueued")
    /// Waits for its time.
    public static let scheduled = State(rawValue: "Scheduled")
    /// Under way.
    public static let processing = State(rawValue: "Processing")
    /// Every target has its outcome.
    public static let completed = State(rawValue: "Completed")
    /// The expression matched nobody.
    public static let noTargetFound = State(rawValue: "NoTargetFound")
    /// The hub gave up.
    public static let abandoned = State(rawValue: "Abandoned")
    public static let canceled = State(rawValue: "Canceled")

    /// Nothing more will happen to the notification.
    public var isFinal: Bool {
      [.completed, .noTargetFound, .abandoned, .canceled].contains(self)
    }
  }

  public var notificationID: String
  /// The address of the notification, as the hub calls it.
  public var location: String?
  public var state: State
  /// When the hub has taken it, in whole seconds; the other times are finer.
  public var enqueueTime: Date?
  public var startTime: Date?
  public var endTime: Date?
  /// The time that a scheduled notification was set for. Belfry only.
  public var dueTime: Date?
  /// What was sent.
  public var body: String?
  /// The tag expression; `nil` for a broadcast.
  public var tags: String?
  /// The send formats involved: `apple`, and `appletemplate` for templates.
  public var targetPlatforms: [String]
  /// For each platform how many targets had which outcome, by the outcome's wire name; names newer
  /// than this build are there too.
  public var outcomes: [PushPlatform: [String: Int]]
  /// Where per-device errors can be read, if the service keeps them.
  public var pnsErrorDetailsURI: String?

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

  /// How many targets had this outcome, on one platform or on all.
  public func count(of outcome: NotificationOutcome, on platform: PushPlatform? = nil) -> Int {
    if let platform { return outcomes[platform]?[outcome.name] ?? 0 }
    return outcomes.values.reduce(0) { $0 + ($1[outcome.name] ?? 0) }
  }
}

extension NotificationTelemetry {
  /// The platforms whose counts stand before `PnsErrorDetailsUri`, and those after it, in their
  /// order (docs/protocol/rest.md, section 5.8).
  private static let platformsInOrder: (before: [PushPlatform], after: [PushPlatform]) = {
    let before: [PushPlatform] = [.apns, .mpns, .wns, .gcm, .adm]
    return (before, PushPlatform.allCases.filter { !before.contains($0) })
  }()

  /// The document as a hub returns it: one line, no declaration, elements in the order that clients
  /// rely on; what is not known is left out. ``dueTime``, which the original has not, comes last.
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
    return text + "</NotificationDetails>"
  }

  private func outcomesXML(_ platform: PushPlatform) -> String {
    guard let counts = outcomes[platform], !counts.isEmpty else { return "" }
    // In the order of the outcome's numbers, success first; names that have none come last.
    func rank(_ name: String) -> UInt8 { NotificationOutcome(name: name)?.rawValue ?? .max }
    let name = "\(platform.telemetryPrefix)OutcomeCounts"
    let items = counts.sorted { (rank($0.key), $0.key) < (rank($1.key), $1.key) }.map {
      "<Outcome><Name>\($0.key.xmlEscaped)</Name><Count>\($0.value)</Count></Outcome>"
    }
    return "<\(name)>\(items.joined())</\(name)>"
  }

  /// Reads the document that a hub returns.
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
