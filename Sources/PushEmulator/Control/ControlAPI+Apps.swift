import Cryptography
import HTTPServer

/// Apps and their credentials (emulator.md, section 2.1).
extension ControlAPI {
  func addApps(_ on: (HTTPMethod, String, @escaping Action) -> Void) {
    on(.get, "/apps") { _ in
      let apps = core.withState { state in
        state.apns.apps.keys.sorted().map { state.appJSON($0) }
      }
      return Self.response(["apps": .array(apps)])
    }
    on(.post, "/apps") { request throws(ControlError) in
      let json = try request.json()
      guard json["pns"]?.text == "apns" || json["pns"] == nil else {
        _ = try JSONReader(.object([.init(name: "pns", value: json["pns"] ?? nil)]), known: ["pns"])
          .string("pns")
        throw .invalidValue("pns", "must be one of: apns")
      }
      let wanted = try Self.apnsApp(json)
      let reply = try core.withState { state throws(ControlError) in
        let (number, made) = try state.addApp(wanted)
        return state.appJSON(number, privateKey: made)
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
      let change = try AppChange(try request.json())
      return Self.response(
        try core.withState { state throws(ControlError) in
          let number = try state.appNumber(id)
          try change.apply(to: &state, app: number)
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

  private static func apnsApp(
    _ json: JSON
  ) throws(ControlError) -> EmulatorState.APNsAppRequest {
    let body = try JSONReader(
      json, known: ["pns", "bundleId", "teamId", "environment", "keys", "certificates"])
    _ = try body.required("pns")
    let bundleID = try body.required("bundleId")
    guard APNsTopic.isWellFormed(ArraySlice(bundleID.utf8)), bundleID.utf8.count <= 200 else {
      throw body.invalid("bundleId", "must be 1 to 200 letters, digits, '.', '-' or '_'")
    }
    var app = EmulatorState.APNsAppRequest(bundleID: bundleID)
    app.teamID = try body.string("teamId")
    if let team = app.teamID, team.isEmpty || team.utf8.count > 64 {
      throw body.invalid("teamId", "must be 1 to 64 characters")
    }
    app.environment = try body.word("environment", APNsEnvironmentScope.self) ?? .both
    app.certificates = try certificates(body) ?? []
    if let items = try body.array("keys") {
      var keys: [EmulatorState.APNsAppRequest.Key] = []
      for (index, item) in items.enumerated() {
        let key = try KeyReader(item, path: "keys[\(index)]").new(environment: app.environment)
        guard !keys.contains(where: { $0.kid == key.kid }) else {
          throw body.invalid("keys", "names key '\(key.kid)' twice")
        }
        keys.append(key)
      }
      app.keys = keys
    }
    return app
  }

  /// SHA-256 values as lower-case hex.
  fileprivate static func certificates(_ body: JSONReader) throws(ControlError) -> [String]? {
    guard let items = try body.array("certificates") else { return nil }
    var found: [String] = []
    for (index, item) in items.enumerated() {
      let reader = try JSONReader(
        item, known: ["sha256"], path: body.name("certificates") + "[\(index)]")
      let text = try reader.required("sha256").filter { $0 != ":" }.lowercased()
      guard text.utf8.count == 64, Hex.decode(text) != nil else {
        throw reader.invalid("sha256", "must be 64 hex digits")
      }
      found.append(text)
    }
    return found
  }
}

/// One item of `keys`.
private struct KeyReader {
  private let reader: JSONReader

  init(_ json: JSON, path: String) throws(ControlError) {
    reader = try JSONReader(
      json, known: ["kid", "publicKeyPem", "scope", "topics", "environment", "revoked"], path: path)
  }

  func kid() throws(ControlError) -> String { try reader.required("kid") }
  func isRevoked() throws(ControlError) -> Bool? { try reader.bool("revoked") }
  func environment() throws(ControlError) -> APNsEnvironmentScope? {
    try reader.word("environment", APNsEnvironmentScope.self)
  }

  func new(
    environment standard: APNsEnvironmentScope
  ) throws(ControlError) -> EmulatorState.APNsAppRequest.Key {
    let pem = try reader.required("publicKeyPem")
    let publicKey: P256PublicKey
    do {
      publicKey = try P256PublicKey(pem: pem)
    } catch {
      throw reader.invalid("publicKeyPem", "cannot be used: \(error)")
    }
    return .init(
      kid: try kid(), publicKey: publicKey,
      scope: try reader.word("scope", APNsKeyScope.self) ?? .team,
      topics: try reader.strings("topics") ?? [], environment: try environment() ?? standard)
  }
}

/// `PATCH /v1/apps/{appId}`: keys are revoked or moved to another environment, new ones (those with a
/// `publicKeyPem`) added, certificates replaced. All of it happens, or nothing.
private struct AppChange: Sendable {
  private struct KeyChange: Sendable {
    let kid: String
    let isRevoked: Bool?
    let environment: APNsEnvironmentScope?
    /// What to add when the app has no such key.
    let new: EmulatorState.APNsAppRequest.Key?
  }

  private let keys: [KeyChange]
  private let certificates: [String]?

  init(_ json: JSON) throws(ControlError) {
    let body = try JSONReader(json, known: ["keys", "certificates"])
    var keys: [KeyChange] = []
    for (index, item) in (try body.array("keys") ?? []).enumerated() {
      let reader = try KeyReader(item, path: "keys[\(index)]")
      let new = item["publicKeyPem"] == nil ? nil : try reader.new(environment: .both)
      let change = KeyChange(
        kid: try reader.kid(), isRevoked: try reader.isRevoked(),
        environment: try reader.environment(), new: new)
      guard !keys.contains(where: { $0.kid == change.kid }) else {
        throw body.invalid("keys", "names key '\(change.kid)' twice")
      }
      keys.append(change)
    }
    self.keys = keys
    certificates = try ControlAPI.certificates(body)
  }

  func apply(to state: inout EmulatorState, app: UInt32) throws(ControlError) {
    for change in keys {
      let present = state.apns.keys[change.kid]
      if let new = change.new {
        guard present == nil || (present?.app == app && present?.publicKey == new.publicKey) else {
          throw .conflict("there is another key '\(change.kid)' already")
        }
      } else if present?.app != app {
        throw .notFound("key '\(change.kid)' of app '\(EmulatorState.appID(app))'")
      }
    }
    let team = state.apns.apps[app]?.teamID ?? ""
    for change in keys {
      if let new = change.new, state.apns.keys[change.kid] == nil {
        state.apns.add(
          APNsKey(
            kid: new.kid, teamID: team, app: app, publicKey: new.publicKey, scope: new.scope,
            topics: new.topics, environment: new.environment))
      }
      state.apns.update(key: change.kid) { key in
        key.isRevoked = change.isRevoked ?? key.isRevoked
        key.environment = change.environment ?? key.environment
      }
    }
    if let certificates { state.apns.setCertificates(certificates, of: app) }
    state.revision += 1
  }
}

extension EmulatorState {
  /// An app as the control API shows it.
  ///
  /// - Parameter privateKey: Only in the answer that made the key.
  func appJSON(
    _ number: UInt32, privateKey: (kid: String, privateKeyPEM: String)? = nil
  ) -> JSON {
    guard let app = apns.apps[number] else { return nil }
    let keys = apns.keys.values.filter { $0.app == number }.sorted { $0.kid < $1.kid }
    let keyList = keys.map { key -> JSON in
      var members: [JSON.Member] = [
        .init(name: "kid", value: .string(key.kid)),
        .init(name: "scope", value: .string(key.scope.rawValue)),
        .init(name: "topics", value: .array(key.topics.map(JSON.string))),
        .init(name: "environment", value: .string(key.environment.rawValue)),
        .init(name: "revoked", value: .bool(key.isRevoked)),
        .init(name: "publicKeyPem", value: .string(key.publicKey.pem)),
      ]
      if let privateKey, privateKey.kid == key.kid {
        members.append(.init(name: "privateKeyPem", value: .string(privateKey.privateKeyPEM)))
      }
      return .object(members)
    }
    let made: [JSON.Member] =
      privateKey.map { key in
        [
          .init(name: "kid", value: .string(key.kid)),
          .init(name: "privateKeyPem", value: .string(key.privateKeyPEM)),
        ]
      } ?? []
    let members: JSON = [
      "appId": .string(Self.appID(number)), "pns": "apns", "bundleId": .string(app.bundleID),
      "teamId": .string(app.teamID), "environment": .string(app.environment.rawValue),
      "keys": .array(keyList),
      "certificates": .array(app.certificates.map { ["sha256": .string($0)] }),
      "devices": JSON(devices.indices(ofApp: number).count),
    ]
    return .object((members.members ?? []) + made)
  }
}
