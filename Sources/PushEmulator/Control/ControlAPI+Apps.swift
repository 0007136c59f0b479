import HTTPServer

/// Apps and their credentials (emulator.md, section 2.1).
extension ControlAPI {
  func addApps(_ on: (HTTPMethod, String, @escaping Action) -> Void) {
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
        let (number, made) = try service.desk.makeApp(json, in: &state)
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
          try state.apps[number]?.desk.changeApp(number, json, in: &state)
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
