public import Foundation

/// What became of a notification so far (spec `rest-api.md` 5.8).
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
