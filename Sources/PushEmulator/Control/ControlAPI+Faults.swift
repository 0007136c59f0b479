import HTTPServer

/// Fault injection (emulator.md, section 2.6).
extension ControlAPI {
  func addFaults(_ on: (HTTPMethod, String, @escaping Action) -> Void) {
    on(.post, "/faults") { request throws(ControlError) in
      let json = try request.json()
      let id = try core.withState { state throws(ControlError) in
        let wanted = try FaultRequest(json) { id throws(ControlError) in
          try state.appNumber(id)
        }
        return state.addFault(wanted)
      }
      afterChange()
      return Self.response(["faultId": .string(id)], status: .created)
    }
    on(.get, "/faults") { _ in
      let list = core.withState { state in state.faults.rules.map { state.faultJSON($0) } }
      return Self.response(["faults": .array(list)])
    }
    on(.get, "/faults/{faultId}") { request throws(ControlError) in
      let id = try request.path("faultId")
      let json = core.withState { state in
        state.faults.rules.first { $0.id == id }.map { state.faultJSON($0) }
      }
      guard let json else { throw .notFound("fault '\(id)'") }
      return Self.response(json)
    }
    on(.delete, "/faults") { _ in
      core.withState { state in
        state.faults.removeAll()
        state.faultRequests = []
      }
      afterChange()
      return HTTPResponse(.noContent)
    }
    on(.delete, "/faults/{faultId}") { request throws(ControlError) in
      let id = try request.path("faultId")
      let removed = core.withState { state in
        state.faultRequests.removeAll { $0.id == id }
        return state.faults.remove(id: id)
      }
      guard removed else { throw .notFound("fault '\(id)'") }
      afterChange()
      return HTTPResponse(.noContent)
    }
  }
}

extension EmulatorState {
  /// - Returns: The new rule's id.
  mutating func addFault(_ request: FaultRequest) -> String {
    let id = faults.add(
      service: request.service, match: request.match, when: request.when, stage: request.stage,
      action: request.action)
    faultRequests.append((id, request.json))
    return id
  }

  /// The rule as it was asked for, with its counters.
  fileprivate func faultJSON(_ rule: FaultRule) -> JSON {
    let asked = faultRequests.first { $0.id == rule.id }?.json.members ?? []
    return .object(
      [.init(name: "faultId", value: .string(rule.id))] + asked + [
        .init(name: "matched", value: JSON(rule.matched)),
        .init(name: "fired", value: JSON(rule.fired)),
      ])
  }
}
