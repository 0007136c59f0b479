import HTTPServer

/// Journal, connections and statistics (emulator.md, section 2.4).
extension ControlAPI {
  func addRecords(_ on: (HTTPMethod, String, @escaping Action) -> Void) {
    on(.get, "/requests") { request throws(ControlError) in
      let after = try request.number("after") ?? 0
      let limit = try request.number("limit") ?? .max
      let status = try request.number("status")
      let handle = request.query("handle")?.lowercased()
      let service = request.query("pns")
      if let service, FaultRule.Service(rawValue: service) == nil {
        throw .invalidValue("pns", "must be one of: \(FaultRule.Service.words)")
      }
      let entries = core.withState { state in
        state.journal.entries(after: after, limit: limit) { entry in
          (service == nil || service == "*" || entry.service.rawValue == service)
            && (status == nil || entry.status == status)
            && (handle == nil || entry.hasHandle(handle ?? ""))
        }
      }
      return Self.response(["requests": .array(entries.map(\.json))])
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
            connection.json(streams: streams[slot] ?? 0, now: now)
          }
        }
      }
      return Self.response(["connections": .array(list)])
    }
    on(.get, "/stats") { _ in Self.response(core.withState { $0.statistics.json }) }
  }
}

extension Journal.Entry {
  /// Whether the request was for this device, by what it named or its path.
  fileprivate func hasHandle(_ wanted: String) -> Bool {
    if let handle { return handle.lowercased() == wanted }
    return fields.first { $0.name == ":path" }?.value.lowercased().hasSuffix("/" + wanted) ?? false
  }
}

extension EmulatorConnection {
  fileprivate func json(streams: Int, now: Int64) -> JSON {
    let identity: JSON =
      if let certificate = apns?.certificate {
        ["certificate": .string(certificate.sha256)]
      } else if let token = apns?.current {
        ["teamId": .string(token.teamID), "keyId": .string(token.kid)]
      } else if let identity {
        ["keyId": .string(identity)]
      } else {
        nil
      }
    return [
      "connection": JSON(number), "pns": .string(service.rawValue),
      "protocol": isHTTP2 ? "h2" : "http/1.1",
      "environment": JSON(apns?.environment.rawValue), "identity": identity,
      "streams": JSON(streams), "requests": JSON(requests), "ageMs": .int(now - openedAt),
    ]
  }
}
