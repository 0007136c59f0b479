import Cryptography
import HTTPServer
import Wire

/// Devices (docs/protocol/emulator.md, section 2.2).
extension ControlAPI {
  func addDevices(_ on: Adder) {
    on(.get, "/devices") { request throws(ControlError) in
      let app = request.query("appId")
      let handle = request.query("handle")
      let newest = try request.number("newest")
      let limit = try request.number("limit") ?? .max
      return Self.response(
        try core.withState { state throws(ControlError) in
          let number = try app.map { id throws(ControlError) in try state.appNumber(id) }
          let wanted = handle.map { state.devices(withHandle: $0) }
          let all = (wanted ?? Array(0..<state.devices.count)).filter { index in
            let device = state.devices[index]
            return !device.flags.contains(.deleted) && (number == nil || device.app == number)
          }
          let shown = newest.map { all.suffix($0) } ?? all.prefix(limit)
          return [
            "devices": .array(shown.map { state.summary(of: $0) }), "total": JSONValue(all.count),
          ]
        })
    }
    on(.post, "/devices") { request throws(ControlError) in
      let json = try request.json()
      let reply = try core.withState { state throws(ControlError) in
        let body = try JSONReader(json, known: json.members?.map(\.name) ?? [])
        let number = try state.appNumber(try body.required("appId"))
        let made = try state[state.apps[number] ?? .apns].makeDevices(
          json, app: number, in: &state)
        return JSONValue.array(made.map { state.summary(of: $0) })
      }
      return Self.response(["devices": reply], status: .created)
    }
    onDevice(on, .get, "") { state, index, _ in state.details(of: index) }
    onDevice(on, .patch, "") { state, index, request throws(ControlError) in
      let body = try JSONReader(
        try request.json(), known: ["online", "powerSaving", "disabled", "presence", "minUrgency"])
      state.change(
        index,
        .init(
          online: try body.bool("online"), powerSaving: try body.bool("powerSaving"),
          disabled: try body.bool("disabled"), presence: try body.word("presence", Presence.self),
          minUrgency: try body.urgency("minUrgency")))
      return state.details(of: index)
    }
    onDevice(on, .post, "/unregister") { state, index, request throws(ControlError) in
      let body = try JSONReader(
        try request.json(orEmpty: true), known: ["mode", "at", "silentFor"])
      state.unregister(
        index, try body.word("mode", EmulatorState.RegistrationEnd.self) ?? .unregistered,
        at: try body.int("at", in: 0...EmulatorClock.latest) ?? state.clock.now,
        silentFor: try body.int("silentFor", in: 0...10_000_000_000) ?? 0)
      return state.details(of: index)
    }
    onDevice(on, .post, "/rotate") { state, index, request throws(ControlError) in
      _ = try JSONReader(try request.json(orEmpty: true), known: [])
      state.rotate(index)
      return state.details(of: index)
    }
    onDevice(on, .get, "/notifications") { state, index, request throws(ControlError) in
      let after = try request.number("after") ?? 0
      let limit = try request.number("limit") ?? .max
      let events = state.devices.events(
        of: index, after: after, limit: state.devices.limits.eventsPerDevice)
      let notifications = events.filter { event in
        if case .notification = event.body { true } else { false }
      }
      return [
        "notifications": .array(notifications.prefix(limit).map { $0.json(device: index) })
      ]
    }
    onDevice(on, .get, "/stored") { state, index, _ in ["stored": state.stored(of: index)] }
    on(.get, "/devices/{deviceId}/events") { request throws(ControlError) in
      let id = try request.path("deviceId")
      let after = try request.after()
      let (index, last) = try core.withState { state throws(ControlError) in
        let index = try state.deviceIndex(id)
        return (index, state.devices.log(of: index)?.lastSeq ?? 0)
      }
      return stream(.device(index), after: after ?? last)
    }
  }

  typealias DeviceAction =
    @Sendable (
      inout EmulatorState, Int, ControlRequest
    ) throws(ControlError) -> JSONValue

  /// Adds a route below `/devices/{deviceId}` that acts on one device.
  func onDevice(
    _ on: Adder, _ method: HTTPMethod, _ path: String, _ action: @escaping DeviceAction
  ) {
    on(method, "/devices/{deviceId}" + path) { request throws(ControlError) in
      let id = try request.path("deviceId")
      return Self.response(
        try core.withState { state throws(ControlError) in
          let index = try state.deviceIndex(id)
          state.settleDue()
          return try action(&state, index, request)
        })
    }
  }
}

/// Devices and their events as the control API shows them.
extension EmulatorState {
  /// The devices that have a handle, or had it: a token, an id, or the address that contains it.
  func devices(withHandle text: String) -> [Int] {
    let text = Self.handle(in: text)
    let token = APNsToken(text.lowercased().utf8)
    let ofAPNs = APNsEnvironment.allCases.compactMap { environment in
      token.flatMap { handles.device($0, in: environment) }
    }
    return ofAPNs + PushService.allCases.compactMap { handles.device($0, text) }
  }

  /// The handle in the address of a subscription or a channel; anything else is one as it is.
  static func handle(in text: String) -> String {
    guard text.hasPrefix("https://") || text.hasPrefix("http://") else { return text }
    if let token = HTTPTarget(text).queryItem("token")?.rawValue {
      return String(decoding: token, as: UTF8.self)
    }
    return String(text.split(separator: "/").last ?? "")
  }

  /// The reply's description of a new device; short, because a load test makes very many.
  func summary(of index: Int) -> JSONValue {
    let device = devices[index]
    let service = device.handle.service
    let kind: String? =
      if case .apns(let handle) = device.handle { handle.kind.rawValue } else { nil }
    return [
      "deviceId": .string(Self.deviceID(index)), "appId": .string(Self.appID(device.app)),
      "pns": .string(service.rawValue), "kind": JSONValue(kind),
      "handle": self[service].handleJSON(device.handle, in: self),
      "online": .bool(devices.isOnline(index)),
      "state": .string(device.registration(at: clock.now).word),
    ]
  }

  /// Everything about a device except its history.
  func details(of index: Int) -> JSONValue {
    let device = devices[index]
    let now = clock.now
    let log = devices.log(of: index)
    let service = self[device.handle.service]
    let registration = device.registration(at: now)
    func handleJSON(_ handle: DeviceHandle, _ registration: Device.Registration) -> JSONValue {
      [
        "handle": service.handleJSON(handle, in: self), "state": .string(registration.word),
        "at": JSONValue(registration.at),
      ]
    }
    let former = (log?.formerHandles ?? []).map { handleJSON($0.handle, $0.registration) }
    let counters = log?.counters ?? .init()
    let presence: Presence = device.flags.contains(.followsStream) ? .stream : .flag
    let first: JSONValue = [
      "presence": .string(presence.rawValue),
      "powerSaving": .bool(device.flags.contains(.powerSaving)),
    ]
    let last: JSONValue = [
      "disabled": .bool(device.flags.contains(.disabled)), "at": JSONValue(registration.at),
      "silentUntil": device.silentUntil > now ? JSONValue(device.silentUntil) : .null,
      "expiresAt": device.expiresAt == .max ? .null : JSONValue(device.expiresAt),
      "handles": .array(former + [handleJSON(device.handle, registration)]),
      "counters": [
        "accepted": JSONValue(counters.accepted), "delivered": JSONValue(counters.delivered),
        "discarded": JSONValue(counters.discarded), "replaced": JSONValue(counters.replaced),
        "expired": JSONValue(counters.expired), "stored": JSONValue(log?.waiting.count ?? 0),
      ],
      "lastSeq": JSONValue(log?.lastSeq ?? 0),
    ]
    return summary(of: index) + first + service.deviceJSON(index, in: self) + last
  }

  /// The messages waiting for a device.
  func stored(of index: Int) -> JSONValue {
    let waiting = devices.log(of: index)?.waiting ?? []
    return .array(
      waiting.map { item in
        item.notification.json + [
          "expiresAt": JSONValue(item.notification.storableUntil),
          "heldUntil": JSONValue(item.heldUntil),
        ]
      })
  }
}

extension Device.Registration {
  var word: String {
    switch self {
    case .registered: "registered"
    case .unregistered: "unregistered"
    case .expired: "expired"
    case .unknown: "unknown"
    }
  }

  /// The start of the condition, in ms.
  var at: Int64? {
    switch self {
    case .unregistered(let at), .expired(let at): at
    case .registered, .unknown: nil
    }
  }
}

extension Notification {
  /// Id, times, headers and payload.
  fileprivate var json: JSONValue {
    let value = (try? JSONValue.read(payload)).flatMap { $0.members == nil ? nil : $0 }
    let fields: JSONValue =
      switch headers {
      case .apns(let headers): JSONValue(headers.fields)
      case .fields(_, let list): JSONValue(list.lazy.map { (name: $0.name, value: $0.value) })
      }
    let decrypted: JSONValue =
      switch decryption {
      case .none: ["decrypted": .null]
      case .succeeded: ["decrypted": true]
      case .failed(let reason): ["decrypted": false, "reason": .string(reason)]
      }
    return [
      "id": .string(id.text), "receivedAt": JSONValue(receivedAt), "headers": fields,
      "payload": value ?? .null, "payloadBase64": .string(Base64.encode(payload)),
    ] + decrypted + ["requestSeq": JSONValue(requestSeq)]
  }
}

extension DeviceEvent {
  /// The SSE event's name.
  var name: String {
    switch body {
    case .notification: "notification"
    case .replaced: "replaced"
    case .expired: "expired"
    case .discarded: "discarded"
    case .deletedMessages: "deleted-messages"
    case .state: "state"
    }
  }

  /// The SSE event's data; every event names its device, for an app's stream.
  func json(device: Int) -> JSONValue {
    let deviceID = JSONValue.string(EmulatorState.deviceID(device))
    let first: JSONValue = ["seq": JSONValue(seq), "deviceId": deviceID]
    switch body {
    case .notification(let delivery):
      return [
        "seq": JSONValue(seq), "pns": .string(delivery.notification.service.rawValue),
        "deviceId": deviceID, "deliveredAt": JSONValue(delivery.deliveredAt),
        "from": .string(delivery.source.rawValue), "replaces": JSONValue(delivery.replaces?.text),
      ] + delivery.notification.json
    case .replaced(let old, let new):
      return first + ["id": .string(old.text), "by": .string(new.text)]
    case .expired(let old): return first + ["id": .string(old.text)]
    case .discarded(let old, let why):
      return first + ["id": .string(old.text), "why": .string(why.rawValue)]
    case .deletedMessages: return first
    case .state(let word): return first + ["state": .string(word.rawValue)]
    }
  }
}
