import Foundation
import HTTP2
import HTTPServer
import Wire

/// The subscriptions of a project's devices to topics; kept in the state file.
struct FCMTopics: Sendable, Codable, Equatable {
  struct Subscription: Sendable, Codable, Equatable {
    /// The installation id, or the token of an app that has none: a subscription ends with it.
    let installation: String
    /// In ms since the Unix epoch.
    let createdAt: Int64
  }

  /// Maximum number of topics of an app instance.
  static let limit = 2000

  /// By topic and device.
  private var subscriptions: [String: [Int: Subscription]] = [:]
  /// The topics of each device, former installations' included; follows from `subscriptions`.
  private var names: [Int: Set<String>] = [:]

  private enum CodingKeys: CodingKey { case subscriptions }

  init() {}

  init(from decoder: any Decoder) throws {
    subscriptions = try decoder.container(keyedBy: CodingKeys.self)
      .decode([String: [Int: Subscription]].self, forKey: .subscriptions)
    for (topic, devices) in subscriptions {
      for device in devices.keys { names[device, default: []].insert(topic) }
    }
  }

  /// `[a-zA-Z0-9-_.~%]{1,900}`.
  static func isName(_ text: String) -> Bool {
    (1...900).contains(text.utf8.count)
      && text.utf8.allSatisfy { $0.isBase64URL || ".~%".utf8.contains($0) }
  }

  /// The subscription of a device, unless it was another installation's.
  func subscription(of device: Int, _ installation: String, to topic: String) -> Subscription? {
    subscriptions[topic]?[device].flatMap { $0.installation == installation ? $0 : nil }
  }

  /// Subscribes a device, or leaves its subscription as it is.
  mutating func subscribe(
    _ device: Int, _ installation: String, to topic: String, now: Int64
  ) throws(FCMRefusal) {
    guard subscription(of: device, installation, to: topic) == nil else { return }
    guard topics(of: device, installation).count < Self.limit else { throw .tooManyTopics }
    subscriptions[topic, default: [:]][device] = .init(installation: installation, createdAt: now)
    names[device, default: []].insert(topic)
  }

  mutating func unsubscribe(_ device: Int, from topic: String) {
    subscriptions[topic]?[device] = nil
    if subscriptions[topic]?.isEmpty == true { subscriptions[topic] = nil }
    names[device]?.remove(topic)
    if names[device]?.isEmpty == true { names[device] = nil }
  }

  /// The topics of a device, sorted.
  func topics(of device: Int, _ installation: String) -> [String] {
    (names[device] ?? []).filter { subscription(of: device, installation, to: $0) != nil }.sorted()
  }

  /// The devices with a subscription to one of these, perhaps a former one, in order.
  func devices(of topics: [String]) -> [Int] {
    Set(topics.flatMap { subscriptions[$0].map { Array($0.keys) } ?? [] }).sorted()
  }
}

/// A request about subscriptions to topics.
struct FCMTopicRequest: Sendable, Equatable {
  enum Target: Sendable, Equatable {
    /// `/v1/projects/{project}/registrations/{registration}/topicSubscriptions[/{topic}]`.
    case registration(project: String, String, topic: String?)
    /// The Instance ID API: `/iid/v1:batchAdd` and `/iid/v1:batchRemove`, which names no project.
    case batch(adds: Bool)
  }

  let target: Target
  let method: String
  /// `topic_name` of the query.
  let topicName: String?
  let allowsMissing: Bool
  let pageSize: Int?
  let pageToken: String?
  /// Whether the bearer is said to be an access token, which the Instance ID API demands.
  let isAccessToken: Bool
  let body: [UInt8]

  /// - Returns: `nil` for another request.
  init?(_ request: HTTP2ServerRequest) {
    let target = HTTPTarget(request.path)
    let path = target.pathSegments.map { $0.decoded ?? "" }
    switch path.count {
    case 2 where path[0] == "iid" && ["v1:batchAdd", "v1:batchRemove"].contains(path[1]):
      self.target = .batch(adds: path[1] == "v1:batchAdd")
    case 6...7
    where path[0] == "v1" && path[1] == "projects" && path[3] == "registrations"
      && path[5] == "topicSubscriptions":
      self.target = .registration(
        project: path[2], path[4], topic: path.count == 7 ? path[6] : nil)
    default: return nil
    }
    method = request.method
    func query(_ names: String...) -> String? {
      names.lazy.compactMap { target.queryItem($0)?.value }.first
    }
    topicName = query("topic_name", "topicName")
    allowsMissing = query("allow_missing", "allowMissing") == "true"
    pageSize = query("page_size", "pageSize").flatMap { Int($0) }
    pageToken = query("page_token", "pageToken")
    isAccessToken = request.fields.first("access_token_auth") == "true"
    body = request.body
  }

  /// The handle of a request about a single registration.
  var handle: String? {
    if case .registration(_, let handle, _) = target { handle } else { nil }
  }
}

extension FCMStandIn {
  // MARK: Sending

  /// Delivers a message to the project's devices that a topic or a condition fits.
  func fanOut(
    _ notification: Notification, to condition: FCMCondition, of app: App, now: Int64,
    in state: inout EmulatorState
  ) -> (recipients: Int, StoreAction?) {
    // With a negation it may be true for devices that have no subscription at all.
    let topics = self.topics(of: app)
    let candidates =
      condition.isTrue { _ in false }
      ? state.devices.indices(ofApp: app.number) : topics.devices(of: condition.topics)
    var actions: Set<StoreAction> = []
    var recipients = 0
    for device in candidates {
      guard let installation = installation(of: device, now: now, in: state),
        condition.isTrue({ topics.subscription(of: device, installation, to: $0) != nil })
      else { continue }
      actions.insert(state.take(notification, for: device, now: now))
      recipients += 1
    }
    return (recipients, actions.count == 1 ? actions.first : nil)
  }

  /// The key of a device's subscriptions; `nil` for one that is no longer registered.
  private func installation(of device: Int, now: Int64, in state: EmulatorState) -> String? {
    guard state.devices.devices.indices.contains(device),
      state.devices[device].registration(at: now) == .registered,
      !state.devices[device].flags.contains(.deleted),
      case .named(let handle) = state.devices[device].handle
    else { return nil }
    return FCMToken.installationID(of: handle.text) ?? handle.text
  }

  // MARK: Subscriptions

  /// Not to be held across a change, which would copy it.
  private func topics(of app: App) -> FCMTopics { topics[app.number] ?? FCMTopics() }

  func answer(
    _ request: FCMTopicRequest, bearer: String?, now: Int64,
    credential: inout Journal.Credential, in state: inout EmulatorState
  ) throws(FCMRefusal) -> ServiceAnswer {
    switch request.target {
    case .batch(let adds):
      return try batch(
        request, adds: adds, bearer: bearer, now: now, credential: &credential, in: &state)
    case .registration(let project, let handle, let topic):
      let app = try app(bearer, project: project, now: now, credential: &credential, in: state)
      let device = try device(of: app, handle, now: now, in: state)
      let name = "projects/\(project)/registrations/\(handle)/topicSubscriptions"
      return try answer(request, about: topic, of: device, app, name: name, now: now, in: &state)
    }
  }

  private func answer(
    _ request: FCMTopicRequest, about topic: String?, of device: Int, _ app: App, name: String,
    now: Int64, in state: inout EmulatorState
  ) throws(FCMRefusal) -> ServiceAnswer {
    let installation = installation(of: device, now: now, in: state) ?? ""
    func json(_ topic: String, _ createdAt: Int64) -> JSONValue {
      [
        "name": .string("\(name)/\(topic)"), "topic_name": .string(topic),
        "create_time": .string(
          WireDate.milliseconds(Date(timeIntervalSince1970: Double(createdAt) / 1000))),
      ]
    }
    func present(_ topic: String) throws(FCMRefusal) -> JSONValue {
      guard let found = topics(of: app).subscription(of: device, installation, to: topic) else {
        throw .init(status: 404, word: "NOT_FOUND", message: "Requested entity was not found.")
      }
      return json(topic, found.createdAt)
    }
    switch (request.method, topic) {
    case ("POST", nil):
      let topic = request.topicName ?? ""
      guard FCMTopics.isName(topic) else {
        throw .badRequest("topic_name", "Invalid value at 'topic_name': no topic")
      }
      guard topics(of: app).subscription(of: device, installation, to: topic) == nil else {
        throw .init(
          status: 409, word: "ALREADY_EXISTS", message: "Requested entity already exists.")
      }
      try change(app, in: &state) { topics throws(FCMRefusal) in
        try topics.subscribe(device, installation, to: topic, now: now)
      }
      return ServiceAnswer(.json(200, json(topic, now)))
    case ("GET", nil):
      let size = max(1, min(request.pageSize ?? 100, 1000))
      let all = topics(of: app).topics(of: device, installation)
        .filter { $0 > request.pageToken ?? "" }
      let shown = try all.prefix(size).map { topic throws(FCMRefusal) in try present(topic) }
      let page: JSONValue = ["topicSubscriptions": .array(shown)]
      guard all.count > size else { return ServiceAnswer(.json(200, page)) }
      return ServiceAnswer(.json(200, page + ["nextPageToken": .string(all[size - 1])]))
    case ("GET", let topic?): return ServiceAnswer(.json(200, try present(topic)))
    case ("PATCH", let topic?):
      if request.allowsMissing, FCMTopics.isName(topic),
        topics(of: app).subscription(of: device, installation, to: topic) == nil
      {
        try change(app, in: &state) { topics throws(FCMRefusal) in
          try topics.subscribe(device, installation, to: topic, now: now)
        }
        return ServiceAnswer(.json(200, json(topic, now)))
      }
      return ServiceAnswer(.json(200, try present(topic)))
    case ("DELETE", let topic?):
      if !request.allowsMissing { _ = try present(topic) }
      try change(app, in: &state) { $0.unsubscribe(device, from: topic) }
      return ServiceAnswer(.json(200, [:]))
    default: throw .init(status: 404, word: "NOT_FOUND", message: "Method not found.")
    }
  }

  /// The Instance ID API: many registrations, one topic.
  private func batch(
    _ request: FCMTopicRequest, adds: Bool, bearer: String?, now: Int64,
    credential: inout Journal.Credential, in state: inout EmulatorState
  ) throws(FCMRefusal) -> ServiceAnswer {
    guard request.method == "POST" else {
      throw .init(status: 404, word: "NOT_FOUND", message: "Method not found.")
    }
    guard request.isAccessToken else { throw .unauthenticated }
    let body = try? JSONValue.read(request.body, uniqueNames: true)
    let app = try app(
      bearer, project: nil, of: body?.array("registration_tokens")?.first?.text, now: now,
      credential: &credential, in: state)
    let prefix = "/topics/"
    guard let body, let topic = body["to"]?.text, topic.hasPrefix(prefix),
      FCMTopics.isName(String(topic.dropFirst(prefix.count))),
      let handles = body.array("registration_tokens"), (1...1000).contains(handles.count)
    else {
      let word = "INVALID_ARGUMENT"
      return ServiceAnswer(.json(400, ["error": .string(word)]), reason: word)
    }
    let name = String(topic.dropFirst(prefix.count))
    let results = handles.map { handle -> JSONValue in
      do throws(FCMRefusal) {
        let device = try device(of: app, handle.text ?? "", now: now, in: state)
        let installation = installation(of: device, now: now, in: state) ?? ""
        try change(app, in: &state) { topics throws(FCMRefusal) in
          if adds {
            try topics.subscribe(device, installation, to: name, now: now)
          } else {
            topics.unsubscribe(device, from: name)
          }
        }
        return [:]
      } catch {
        let words = [
          "UNREGISTERED": "NOT_FOUND", "SENDER_ID_MISMATCH": "PERMISSION_DENIED",
          FCMRefusal.tooManyTopics.reason: "TOO_MANY_TOPICS",
        ]
        return ["error": .string(words[error.reason] ?? error.reason)]
      }
    }
    var answer = ServiceAnswer(.json(200, ["results": .array(results)]))
    answer.handle = topic
    return answer
  }

  private func change(
    _ app: App, in state: inout EmulatorState,
    _ body: (inout FCMTopics) throws(FCMRefusal) -> Void
  ) throws(FCMRefusal) {
    try body(&topics[app.number, default: FCMTopics()])
    state.revision += 1
  }

  // MARK: Control

  /// `POST /v1/devices/{deviceId}/topics`: what an app does with its own subscriptions.
  func changeTopics(
    of index: Int, _ body: JSONReader, in state: inout EmulatorState
  ) throws(ControlError) {
    guard let app = apps[state.devices[index].app],
      let installation = installation(of: index, now: state.clock.now, in: state)
    else { throw .conflict("only a registered device of fcm subscribes to topics") }
    for member in ["subscribe", "unsubscribe"] {
      for topic in try body.strings(member) ?? [] {
        guard FCMTopics.isName(topic) else {
          throw body.invalid(member, "must hold names of letters, digits, '-', '_', '.', '~', '%'")
        }
        let now = state.clock.now
        do throws(FCMRefusal) {
          try change(app, in: &state) { topics throws(FCMRefusal) in
            if member == "subscribe" {
              try topics.subscribe(index, installation, to: topic, now: now)
            } else {
              topics.unsubscribe(index, from: topic)
            }
          }
        } catch {
          throw .conflict(error.message)
        }
      }
    }
  }

  func deviceJSON(_ index: Int, in state: EmulatorState) -> JSONValue {
    guard let app = apps[state.devices[index].app],
      let installation = installation(of: index, now: state.clock.now, in: state)
    else { return ["topics": .array([])] }
    return ["topics": .array(topics(of: app).topics(of: index, installation).map(JSONValue.string))]
  }
}
