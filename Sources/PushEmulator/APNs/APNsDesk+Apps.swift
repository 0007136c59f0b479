import Cryptography
import Wire

/// Reading the apps that the control API makes and changes.
extension APNsDesk {
  static func app(
    _ json: JSON
  ) throws(ControlError) -> EmulatorState.APNsAppRequest {
    let body = try JSONReader(
      json,
      known: ["pns", "bundleId", "teamId", "environment", "keys", "certificates", "broadcasts"])
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
    app.hasBroadcasts = try body.bool("broadcasts") ?? true
    if let items = try body.array("keys") {
      var keys: [EmulatorState.APNsAppRequest.Key] = []
      for (index, item) in items.enumerated() {
        let key = try APNsKeyReader(item, path: "keys[\(index)]").new(environment: app.environment)
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
  static func certificates(_ body: JSONReader) throws(ControlError) -> [String]? {
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
struct APNsKeyReader {
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
/// `publicKeyPem`) added, certificates replaced, broadcasts allowed or not. All of it happens, or
/// nothing.
struct APNsAppChange: Sendable {
  private struct KeyChange: Sendable {
    let kid: String
    let isRevoked: Bool?
    let environment: APNsEnvironmentScope?
    /// What to add when the app has no such key.
    let new: EmulatorState.APNsAppRequest.Key?
  }

  private let keys: [KeyChange]
  private let certificates: [String]?
  private let hasBroadcasts: Bool?

  init(_ json: JSON) throws(ControlError) {
    let body = try JSONReader(json, known: ["keys", "certificates", "broadcasts"])
    var keys: [KeyChange] = []
    for (index, item) in (try body.array("keys") ?? []).enumerated() {
      let reader = try APNsKeyReader(item, path: "keys[\(index)]")
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
    certificates = try APNsDesk.certificates(body)
    hasBroadcasts = try body.bool("broadcasts")
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
    if let hasBroadcasts { state.apns.setBroadcasts(hasBroadcasts, of: app) }
    state.revision += 1
  }
}
