import HTTPServer
import Wire

/// Apps and their credentials (docs/protocol/emulator.md, section 2.1).
extension ControlAPI {
  func addApps(_ on: Adder) {
    on(.get, "/apps") { _ in
      let apps = core.withState { state in
        state.apps.keys.sorted().map { state.appJSON($0) }
      }
      return Self.response(["apps": .array(apps)])
    }
    on(.post, "/apps") { request throws(ControlError) in
      let json = try request.json()
      let body = try JSONReader(json, known: json.members?.map(\.name) ?? [])
      let service = try body.word("pns", PushService.self) ?? .apns
      let reply = try core.withState { state throws(ControlError) in
        let (number, made) = try state[service].makeApp(json, in: &state)
        return state.appJSON(number, made: made)
      }
      return Self.response(reply, status: .created)
    }
    on(.get, "/apps/{appId}") { request throws(ControlError) in
      let id = try request.path("appId")
      return Self.response(
        try core.withState { state throws(ControlError) in
          state.appJSON(try state.appNumber(id))
        })
    }
    on(.patch, "/apps/{appId}") { request throws(ControlError) in
      let id = try request.path("appId")
      let json = try request.json()
      return Self.response(
        try core.withState { state throws(ControlError) in
          let number = try state.appNumber(id)
          if let service = state.apps[number] {
            try state[service].changeApp(number, json, in: &state)
          }
          return state.appJSON(number)
        })
    }
    on(.delete, "/apps/{appId}") { request throws(ControlError) in
      let id = try request.path("appId")
      try core.withState { state throws(ControlError) in
        state.removeApp(try state.appNumber(id))
      }
      return HTTPResponse(.noContent)
    }
    on(.get, "/apps/{appId}/events") { request throws(ControlError) in
      let id = try request.path("appId")
      let after = try request.after()
      let (app, last) = try core.withState { state throws(ControlError) in
        let app = try state.appNumber(id)
        return (app, state.devices.feed(of: app).lastID)
      }
      return stream(.app(app), after: after ?? last)
    }
  }

  func stream(_ source: EventStream.Source, after: Int) -> HTTPResponse {
    let stream = EventStream(core: core, source: source, after: after, heartbeat: heartbeat)
    return HTTPResponse(.ok, headers: ServerSentEvent.headers, body: .stream(stream.run))
  }
}

extension EmulatorState {
  /// An app as the control API shows it.
  ///
  /// - Parameter made: The members that only the reply to its creation contains.
  fileprivate func appJSON(_ number: UInt32, made: JSONValue = [:]) -> JSONValue {
    guard let service = apps[number] else { return .null }
    let first: JSONValue = [
      "appId": .string(Self.appID(number)), "pns": .string(service.rawValue),
    ]
    return first + self[service].appJSON(number, made: made, in: self)
      + ["devices": JSONValue(devices.indices(ofApp: number).count)] + made
  }
}

/// Journal, connections and statistics (docs/protocol/emulator.md, section 2.4).
extension ControlAPI {
  func addRecords(_ on: Adder) {
    on(.get, "/requests") { request throws(ControlError) in
      let after = try request.number("after") ?? 0
      let limit = try request.number("limit") ?? .max
      let status = try request.number("status")
      let handle = request.query("handle").map { EmulatorState.handle(in: $0).lowercased() }
      let service = request.query("pns")
      if let service, service != "*", ServiceName(service) == nil {
        throw .invalidValue("pns", "must be one of: \(ServiceName.list)")
      }
      let newest = try request.number("newest")
      let (entries, total) = core.withState { state in
        func fits(_ entry: Journal.Entry) -> Bool {
          (service == nil || service == "*" || entry.service.text == service)
            && (status == nil || entry.status == status)
            && (handle == nil || entry.hasHandle(handle ?? ""))
        }
        let entries =
          newest.map { state.journal.entries(newest: $0, where: fits) }
          ?? state.journal.entries(after: after, limit: limit, where: fits)
        return (entries, state.journal.count)
      }
      return Self.response(["requests": .array(entries.map(\.json)), "total": JSONValue(total)])
    }
    on(.get, "/requests/events") { request throws(ControlError) in
      let after = try request.after() ?? core.withState { $0.lastRequest }
      let stream = RequestStream(core: core, after: after, heartbeat: heartbeat)
      return HTTPResponse(.ok, headers: ServerSentEvent.headers, body: .stream(stream.run))
    }
    on(.delete, "/requests") { _ in
      core.withState { $0.journal.removeAll() }
      return HTTPResponse(.noContent)
    }
    on(.get, "/connections") { _ in
      let streams = openStreams()
      let list = core.withState { state in
        let now = state.clock.now
        return state.connections.slots.indices.compactMap { slot in
          state.connections[slot].map { connection in
            connection.json(
              streams: streams[slot] ?? 0, now: now,
              state[connection.service].identity(ofConnection: slot, in: state))
          }
        }
      }
      return Self.response(["connections": .array(list)])
    }
    on(.get, "/stats") { _ in
      Self.response(
        core.withState { state in
          let dropped = state.devices.dropped
          return state.statistics.json(dropped: [
            "events": JSONValue(dropped.events), "waiting": JSONValue(dropped.waiting),
            "requests": JSONValue(state.journal.dropped),
          ])
        })
    }
  }
}

extension Journal.Entry {
  /// Whether the request was for this device, by its handle or its path.
  fileprivate func hasHandle(_ wanted: String) -> Bool {
    if let handle { return handle.lowercased() == wanted }
    return fields.first { $0.name == ":path" }?.value.lowercased().hasSuffix("/" + wanted) ?? false
  }
}

extension EmulatorConnection {
  fileprivate func json(
    streams: Int, now: Int64, _ known: (identity: JSONValue, environment: String?)?
  ) -> JSONValue {
    [
      "connection": JSONValue(number), "pns": .string(service.rawValue),
      "protocol": isHTTP2 ? "h2" : "http/1.1", "environment": JSONValue(known?.environment),
      "identity": known?.identity ?? identity.map { ["keyId": .string($0)] } ?? .null,
      "streams": JSONValue(streams), "requests": JSONValue(requests),
      "ageMs": JSONValue(now - openedAt),
    ]
  }
}

/// Fault injection (docs/protocol/emulator.md, section 2.6).
extension ControlAPI {
  func addFaults(_ on: Adder) {
    on(.post, "/faults") { request throws(ControlError) in
      let json = try request.json()
      let id = try core.withState { state throws(ControlError) in
        state.faults.add(
          try FaultRule(json) { id throws(ControlError) in try state.appNumber(id) })
      }
      afterChange()
      return Self.response(["faultId": .string(id)], status: .created)
    }
    on(.get, "/faults") { _ in
      let list = core.withState { state in state.faults.rules.map(\.asked) }
      return Self.response(["faults": .array(list)])
    }
    on(.get, "/faults/{faultId}") { request throws(ControlError) in
      let id = try request.path("faultId")
      let json = core.withState { state in
        state.faults.rules.first { $0.id == id }?.asked
      }
      guard let json else { throw .notFound("fault '\(id)'") }
      return Self.response(json)
    }
    on(.delete, "/faults") { _ in
      core.withState { $0.faults.removeAll() }
      afterChange()
      return HTTPResponse(.noContent)
    }
    on(.delete, "/faults/{faultId}") { request throws(ControlError) in
      let id = try request.path("faultId")
      guard core.withState({ $0.faults.remove(id: id) }) else { throw .notFound("fault '\(id)'") }
      afterChange()
      return HTTPResponse(.noContent)
    }
  }
}

extension FaultRule {
  /// The rule as requested, with its counters.
  fileprivate var asked: JSONValue {
    ["faultId": .string(id)] + json + ["matched": JSONValue(matched), "fired": JSONValue(fired)]
  }
}
