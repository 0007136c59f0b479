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
        let body = try JSONReader(json, known: json.members?.map(\.name) ?? [])
        let number = try state.appNumber(try body.required("appId"))
        let desk = (state.apps[number] ?? .apns).desk
        let made = try desk.makeDevices(json, app: number, in: &state)
        return JSON.array(made.map { state.summary(of: $0) })
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
    onDevice(on, .post, "/register") { state, index, request throws(ControlError) in
      let body = try JSONReader(try request.json(), known: ["by"])
      guard let by = try body.word("by", FCMDesk.Registration.self) else { throw .missing("by") }
      try state.registerAtFCM(index, by: by)
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
    ) throws(ControlError) -> JSON

  /// A route below `/devices/{deviceId}` that works on one device.
  func onDevice(
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
}
