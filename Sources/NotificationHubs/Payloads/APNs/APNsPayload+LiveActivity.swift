public import Foundation

extension APNsPayload {
  /// A change to a Live Activity.
  ///
  /// ```swift
  /// let state = try PayloadValue(encoding: Delivery.ContentState(stops: 3))
  /// let payload = try APNsPayload.liveActivity(.update, contentState: state)
  /// ```
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/activitykit/starting-and-updating-live-activities-with-activitykit-push-notifications>
  public enum ActivityEvent: Hashable, Sendable {
    /// Starts an activity, with a push-to-start token.
    ///
    /// - `attributesType`: The name of the `ActivityAttributes` type.
    /// - `attributes`: Its values.
    /// - `updates`: The channel by which the activity receives its updates.
    case start(attributesType: String, attributes: PayloadValue, updates: ActivityUpdates? = nil)
    /// Updates an activity, with its update token.
    case update
    /// Ends an activity. It stays on the Lock Screen until `dismissal`, at most four hours; `nil`
    /// leaves that to the system.
    case end(dismissal: Date? = nil)

    var word: String {
      switch self {
      case .start: "start"
      case .update: "update"
      case .end: "end"
      }
    }
  }

  /// The channel by which an activity started by a push receives its updates (iOS 18 and later).
  public enum ActivityUpdates: Hashable, Sendable {
    /// An update token, which the system passes to the app.
    case token
    /// A broadcast channel, by its id in base64 as assigned by APNs.
    case channel(String)
  }

  /// Creates a push that starts, updates or ends a Live Activity.
  ///
  /// - Parameters:
  ///   - contentState: The activity's `ContentState`, a JSON object; see
  ///     ``PayloadValue/init(encoding:with:)``.
  ///   - timestamp: The time of the state: the system ignores a state older than the current one.
  ///   - alert: An alert that draws attention to the change; required for a start.
  ///   - sound: The sound of `alert`.
  ///   - staleDate: The time from which the activity counts as out of date.
  ///   - relevanceScore: The rank among the app's activities; not limited to 1.
  ///   - custom: Members beside `aps`.
  ///   - delivery: Delivery options. Priority 10 counts against the activity's budget, 5 does not.
  /// - Throws: ``PayloadError``.
  public static func liveActivity(
    _ event: ActivityEvent, contentState: PayloadValue, timestamp: Date = Date(),
    alert: Alert? = nil, sound: Sound? = nil, staleDate: Date? = nil,
    relevanceScore: Double? = nil, custom: [String: PayloadValue] = [:],
    delivery: Delivery = Delivery()
  ) throws(PayloadError) -> APNsPayload {
    let aps = try activityMembers(
      event, contentState: contentState, timestamp: timestamp, alert: alert, sound: sound,
      staleDate: staleDate, relevanceScore: relevanceScore)
    return try APNsPayload(.liveactivity, aps: aps, custom: custom, delivery: delivery)
  }

  /// The members of `aps`.
  static func activityMembers(
    _ event: ActivityEvent, contentState: PayloadValue, timestamp: Date, alert: Alert?,
    sound: Sound?, staleDate: Date?, relevanceScore: Double?
  ) throws(PayloadError) -> [String: PayloadValue] {
    guard case .object = contentState else {
      throw PayloadError(.malformed, "aps.content-state", "must be a JSON object")
    }
    var aps: [String: PayloadValue] = [
      "timestamp": try seconds(timestamp, "aps.timestamp"), "event": .string(event.word),
      "content-state": contentState,
    ]
    switch event {
    case .start(let type, let attributes, let updates):
      guard alert != nil else {
        throw PayloadError(.missing, "aps.alert", "is needed to start a Live Activity")
      }
      try PayloadError.check(type, "aps.attributes-type")
      guard case .object = attributes else {
        throw PayloadError(.malformed, "aps.attributes", "must be a JSON object")
      }
      aps["attributes-type"] = .string(type)
      aps["attributes"] = attributes
      try add(updates, to: &aps)
    case .update: break
    case .end(let dismissal):
      if let dismissal { aps["dismissal-date"] = try seconds(dismissal, "aps.dismissal-date") }
    }
    if let alert { aps["alert"] = try self.alert(alert, sound) }
    if sound != nil, alert == nil {
      throw PayloadError(.missing, "aps.alert", "is needed for a sound")
    }
    if let staleDate { aps["stale-date"] = try seconds(staleDate, "aps.stale-date") }
    aps["relevance-score"] = relevanceScore.map { .double($0) }
    return aps
  }

  private static func add(
    _ updates: ActivityUpdates?, to aps: inout [String: PayloadValue]
  ) throws(PayloadError) {
    switch updates {
    case nil: break
    case .token: aps["input-push-token"] = 1
    case .channel(let id):
      guard !id.isEmpty, Data(base64Encoded: id) != nil else {
        throw PayloadError(
          .malformed, "aps.input-push-channel", "must be a channel id in base64, as APNs gave it")
      }
      aps["input-push-channel"] = .string(id)
    }
  }

  /// In a Live Activity the alert contains the sound, and each localized text is a separate object.
  private static func alert(_ alert: Alert, _ sound: Sound?) throws(PayloadError) -> PayloadValue {
    var members: [String: PayloadValue] = [:]
    for (name, text) in [("title", alert.title), ("body", alert.body)] {
      switch text {
      case nil: break
      case .plain(let text)?: members[name] = .string(text)
      case .localized(let key, let arguments)?:
        try PayloadError.check(key, "aps.alert.\(name).loc-key")
        members[name] = [
          "loc-key": .string(key), "loc-args": .array(arguments.map { .string($0) }),
        ]
      }
    }
    guard !members.isEmpty, alert.subtitle == nil, alert.launchImage == nil else {
      throw PayloadError(
        .malformed, "aps.alert", "of a Live Activity has a title, a body or both, nothing else")
    }
    if let sound { members["sound"] = try sound.value(as: "aps.alert.sound") }
    return .object(members)
  }

  private static func seconds(
    _ date: Date, _ member: String
  ) throws(PayloadError) -> PayloadValue {
    try PayloadError.check(date.timeIntervalSince1970, in: 0...1e12, member)
    return .int(Int64(date.timeIntervalSince1970))
  }
}

extension APNsPayload {
  /// A change to the Live Activities that subscribe to a channel. A channel cannot start an
  /// activity; that takes a push-to-start token and ``ActivityUpdates/channel(_:)``.
  public enum BroadcastEvent: Hashable, Sendable {
    /// Updates the activities.
    case update
    /// Ends the activities. They stay on the Lock Screen until `dismissal`, at most four hours;
    /// `nil` leaves that to the system.
    case end(dismissal: Date? = nil)
  }

  /// The maximum payload of a broadcast, in bytes; larger than for a push to one device.
  public static let broadcastLimit = 5120

  /// Creates a push that updates or ends all Live Activities that subscribe to a channel, for
  /// ``NotificationHubClient/send(_:toChannel:)``.
  ///
  /// - Parameters:
  ///   - priority: Priority 10 counts against the activities' budget, 5 does not.
  ///   - expiration: The time for which APNs retries; a channel that stores no message only takes
  ///     `once`.
  ///
  /// The others are as in
  /// ``liveActivity(_:contentState:timestamp:alert:sound:staleDate:relevanceScore:custom:delivery:)``.
  /// - Throws: ``PayloadError``.
  /// - SeeAlso:
  ///   <https://developer.apple.com/documentation/usernotifications/sending-broadcast-push-notification-requests-to-apns>
  public static func broadcast(
    _ event: BroadcastEvent, contentState: PayloadValue, timestamp: Date = Date(),
    alert: Alert? = nil, sound: Sound? = nil, staleDate: Date? = nil,
    relevanceScore: Double? = nil, custom: [String: PayloadValue] = [:],
    priority: Priority = .immediate, expiration: Expiration = .once
  ) throws(PayloadError) -> APNsPayload {
    let activityEvent: ActivityEvent =
      switch event {
      case .update: .update
      case .end(let dismissal): .end(dismissal: dismissal)
      }
    let aps = try activityMembers(
      activityEvent, contentState: contentState, timestamp: timestamp, alert: alert, sound: sound,
      staleDate: staleDate, relevanceScore: relevanceScore)
    return try APNsPayload(
      .liveactivity, aps: aps, custom: custom,
      delivery: Delivery(priority: priority, expiration: expiration), limit: broadcastLimit)
  }
}
