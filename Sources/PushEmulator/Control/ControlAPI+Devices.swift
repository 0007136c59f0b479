import HTTPServer

/// Devices (emulator.md, section 2.2).
extension ControlAPI {
  func addDevices(_ on: (HTTPMethod, String, @escaping Action) -> Void) {
    on(.get, "/devices") { request throws(ControlError) in
      let app = request.query("appId")
      let limit = try request.number("limit") ?? .max
      return Self.response(
        try core.withState { state throws(ControlError) in
          let number = try app.map { id throws(ControlError) in try state.appNumber(id) }
          var list: [JSON] = []
          for index in 0..<state.devices.count where list.count < limit {
            let device = state.devices[index]
            guard !device.flags.contains(.deleted), number == nil || device.app == number
            else { continue }
            list.append(state.summary(of: index))
          }
          return ["devices": .array(list)]
        })
    }
    on(.post, "/devices") { request throws(ControlError) in
      let json = try request.json()
      let reply = try core.withState { state throws(ControlError) in
        let wanted = try Self.apnsDevices(json, state)
        let made = try state.addDevices(wanted)
        return JSON.array(made.map { state.summary(of: $0) })
      }
      return Self.response(["devices": reply], status: .created)
    }
    onDevice(on, .get, "") { state, index, _ in state.details(of: index) }
    onDevice(on, .patch, "") { state, index, request throws(ControlError) in
      let body = try JSONReader(
        try request.json(), known: ["online", "powerSaving", "disabled", "presence"])
      state.change(
        index,
        .init(
          online: try body.bool("online"), powerSaving: try body.bool("powerSaving"),
          disabled: try body.bool("disabled"), presence: try body.word("presence", Presence.self)))
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

  private typealias DeviceAction =
    @Sendable (
      inout EmulatorState, Int, ControlRequest
    ) throws(ControlError) -> JSON

  /// A route below `/devices/{deviceId}` that works on one device.
  private func onDevice(
    _ on: (HTTPMethod, String, @escaping Action) -> Void, _ method: HTTPMethod, _ path: String,
    _ action: @escaping DeviceAction
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

  /// Most devices of one request.
  private static let deviceLimit: Int64 = 1_000_000

  private static func apnsDevices(
    _ json: JSON, _ state: EmulatorState
  ) throws(ControlError) -> EmulatorState.APNsDeviceRequest {
    let body = try JSONReader(
      json,
      known: [
        "appId", "kind", "count", "online", "presence", "ttl", "environment", "handle", "state",
        "at",
      ])
    let number = try state.appNumber(try body.required("appId"))
    let scope = state.apns.apps[number]?.environment ?? .both
    var wanted = EmulatorState.APNsDeviceRequest(app: number)
    wanted.kind = try body.word("kind", APNsKind.self) ?? .alert
    wanted.count = Int(try body.int("count", in: 1...deviceLimit) ?? 1)
    wanted.online = try body.bool("online") ?? true
    wanted.presence = try body.word("presence", Presence.self) ?? .flag
    wanted.ttl = try body.int("ttl", in: 0...10_000_000_000)
    wanted.end = try body.word("state", EmulatorState.RegistrationEnd.self)
    wanted.at = try body.int("at", in: 0...EmulatorClock.latest)
    if wanted.at != nil, wanted.end == nil { throw body.invalid("at", "goes with 'state' only") }
    let handle = try body.object("handle", known: ["token", "environment"])
    let inHandle = try handle?.word("environment", APNsEnvironment.self)
    let inBody = try body.word("environment", APNsEnvironment.self)
    wanted.environment = inHandle ?? inBody ?? (scope == .sandbox ? .sandbox : .production)
    guard scope.allows(wanted.environment) else {
      throw body.invalid("environment", "must be the app's: \(scope.rawValue)")
    }
    if let handle, let text = try handle.string("token") {
      guard let token = APNsToken(text.utf8) else {
        throw handle.invalid("token", "must be 64 hex digits")
      }
      guard wanted.count == 1 else { throw body.invalid("count", "must be 1 with a fixed token") }
      wanted.token = token
    }
    return wanted
  }
}
