import Cryptography
import Wire

/// An app as Apple's developer account knows it: team, bundle id, certificates; kept in the state
/// file.
struct APNsApp: Sendable, Codable {
  /// Unique in the emulator.
  let number: UInt32
  let bundleID: String
  let teamID: String
  let environment: APNsEnvironmentScope
  /// SHA-256 of the registered client certificates, lower-case hex.
  var certificates: [String]
  /// Whether the app may have broadcast channels; at Apple this is a capability of the app's
  /// identifier. `nil` in a file of an earlier version, where every app had them.
  var hasBroadcasts: Bool?
  /// Every kind's topic, by the kind's index in `APNsKind.allCases`: notifications share the
  /// string.
  fileprivate(set) var topics: [String] = []

  private enum CodingKeys: String, CodingKey {
    case number, bundleID, teamID, environment, certificates, hasBroadcasts
  }
}

/// A signing key that APNs knows (`.p8`); belongs to a team and was registered with an app. Kept in
/// the state file.
struct APNsKey: Sendable, Codable {
  let kid: String
  var teamID = ""
  /// The app it was registered with; the key is deleted with that app.
  var app: UInt32 = 0
  let publicKeyPEM: String
  /// The private key, for a key that the emulator made; shown once, and kept for its operator.
  var privateKeyPEM: String?
  var scope = APNsKeyScope.team
  /// Topics or bundle ids a topic-scoped key may use.
  var topics: [String] = []
  var environment = APNsEnvironmentScope.both
  var isRevoked = false

  func allows(topic: ArraySlice<UInt8>, bundleID: String) -> Bool {
    scope == .team
      || topics.contains { $0 == bundleID || topic.elementsEqual($0.utf8) }
  }
}

/// Apps and keys, as in Apple's developer accounts.
struct APNsAccounts: Sendable {
  private(set) var apps: [UInt32: APNsApp] = [:]
  private(set) var keys: [String: APNsKey] = [:]
  /// Team, then bundle id, to the app's number.
  private var teams: [String: [String: UInt32]] = [:]
  /// Increases with every change of apps and keys, and invalidates what a connection remembers of
  /// them.
  private(set) var epoch = 0

  /// - Parameter team: `nil` for any.
  func app(team: String?, bundleID: String) -> APNsApp? {
    guard let team else { return apps.values.first { $0.bundleID == bundleID } }
    return teams[team]?[bundleID].flatMap { apps[$0] }
  }

  func hasApp(team: String?, bundleID: ArraySlice<UInt8>) -> Bool {
    app(team: team, bundleID: String(decoding: bundleID, as: UTF8.self)) != nil
  }

  /// - Precondition: The team has no other app of this bundle id.
  mutating func add(_ app: APNsApp) {
    apps[app.number] = app
    apps[app.number]?.topics = APNsKind.allCases.map { app.bundleID + $0.topicSuffix }
    teams[app.teamID, default: [:]][app.bundleID] = app.number
    epoch += 1
  }

  mutating func add(_ key: APNsKey) {
    keys[key.kid] = key
    epoch += 1
  }

  mutating func setCertificates(_ certificates: [String], of number: UInt32) {
    apps[number]?.certificates = certificates
    epoch += 1
  }

  mutating func setBroadcasts(_ hasBroadcasts: Bool, of number: UInt32) {
    apps[number]?.hasBroadcasts = hasBroadcasts
  }

  /// Removes an app with its keys.
  mutating func remove(app number: UInt32) {
    guard let app = apps.removeValue(forKey: number) else { return }
    teams[app.teamID]?[app.bundleID] = nil
    keys = keys.filter { $0.value.app != number }
    epoch += 1
  }

  /// Removes everything; only the epoch continues.
  mutating func forgetAll() {
    let epoch = epoch
    self = APNsAccounts()
    self.epoch = epoch + 1
  }
}

/// The properties of a new app; `nil` members are generated.
struct APNsAppRequest: Sendable {
  var bundleID: String
  var teamID: String?
  var environment = APNsEnvironmentScope.both
  var keys: [APNsKey]?
  var certificates: [String] = []
  var hasBroadcasts = true

  init(bundleID: String) { self.bundleID = bundleID }

  /// Reads the body of `POST /v1/apps`.
  fileprivate init(_ json: JSONValue) throws(ControlError) {
    let body = try JSONReader(
      json,
      known: ["pns", "bundleId", "teamId", "environment", "keys", "certificates", "broadcasts"])
    _ = try body.required("pns")
    bundleID = try body.required("bundleId")
    guard APNsTopic.isWellFormed(ArraySlice(bundleID.utf8)), bundleID.utf8.count <= 200 else {
      throw body.invalid("bundleId", "must be 1 to 200 letters, digits, '.', '-' or '_'")
    }
    teamID = try body.string("teamId")
    if let team = teamID, team.isEmpty || team.utf8.count > 64 {
      throw body.invalid("teamId", "must be 1 to 64 characters")
    }
    environment = try body.word("environment", APNsEnvironmentScope.self) ?? .both
    certificates = try Self.certificates(body) ?? []
    hasBroadcasts = try body.bool("broadcasts") ?? true
    guard let items = try body.array("keys") else { return }
    var keys: [APNsKey] = []
    for (index, item) in items.enumerated() {
      let key = try APNsKeyReader(item, path: "keys[\(index)]").new(environment: environment)
      guard !keys.contains(where: { $0.kid == key.kid }) else {
        throw body.invalid("keys", "names key '\(key.kid)' twice")
      }
      keys.append(key)
    }
    self.keys = keys
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
private struct APNsKeyReader {
  private let reader: JSONReader

  init(_ json: JSONValue, path: String) throws(ControlError) {
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
  ) throws(ControlError) -> APNsKey {
    let given = try reader.required("publicKeyPem")
    let pem: String
    do {
      pem = try P256PublicKey(pem: given).pem
    } catch {
      throw reader.invalid("publicKeyPem", "cannot be used: \(error)")
    }
    return APNsKey(
      kid: try kid(), publicKeyPEM: pem,
      scope: try reader.word("scope", APNsKeyScope.self) ?? .team,
      topics: try reader.strings("topics") ?? [], environment: try environment() ?? standard)
  }
}

extension APNsStandIn {
  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue) {
    let (number, made) = try addApp(try APNsAppRequest(json), in: &state)
    guard let made else { return (number, [:]) }
    return (
      number, ["kid": .string(made.kid), "privateKeyPem": JSONValue(made.privateKeyPEM)]
    )
  }

  /// - Returns: The app's number, and the key when one was made.
  func addApp(
    _ request: APNsAppRequest, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: APNsKey?) {
    if let team = request.teamID, accounts.app(team: team, bundleID: request.bundleID) != nil {
      throw .conflict("team '\(team)' has an app '\(request.bundleID)' already")
    }
    for key in request.keys ?? [] where accounts.keys[key.kid] != nil {
      throw .conflict("there is a key '\(key.kid)' already")
    }
    let team = request.teamID ?? state.generator.appleID()
    var made: APNsKey?
    if request.keys == nil, request.certificates.isEmpty {
      do {
        let privateKey = try P256PrivateKey()
        made = APNsKey(
          kid: state.generator.appleID(), publicKeyPEM: try privateKey.publicKey().pem,
          privateKeyPEM: try privateKey.pem(), environment: request.environment)
      } catch {
        throw .engine(error)
      }
    }
    let number = state.newApp(.apns)
    accounts.add(
      APNsApp(
        number: number, bundleID: request.bundleID, teamID: team,
        environment: request.environment, certificates: request.certificates,
        hasBroadcasts: request.hasBroadcasts))
    for var key in request.keys ?? [made].compactMap({ $0 }) {
      (key.teamID, key.app) = (team, number)
      accounts.add(key)
    }
    return (number, made)
  }

  /// Keys are revoked or moved to another environment, new ones (those with a `publicKeyPem`)
  /// added, certificates replaced, broadcasts allowed or not.
  func changeApp(
    _ number: UInt32, _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["keys", "certificates", "broadcasts"])
    var changes: [String: APNsKey] = [:]
    for (index, item) in (try body.array("keys") ?? []).enumerated() {
      let reader = try APNsKeyReader(item, path: "keys[\(index)]")
      let new = item.member("publicKeyPem") == nil ? nil : try reader.new(environment: .both)
      let kid = try reader.kid()
      guard changes[kid] == nil else { throw body.invalid("keys", "names key '\(kid)' twice") }
      let present = accounts.keys[kid]
      if let new {
        guard
          present == nil || (present?.app == number && present?.publicKeyPEM == new.publicKeyPEM)
        else { throw .conflict("there is another key '\(kid)' already") }
      } else if present?.app != number {
        throw .notFound("key '\(kid)' of app '\(EmulatorState.appID(number))'")
      }
      guard var key = present ?? new else { continue }
      key.teamID = accounts.apps[number]?.teamID ?? ""
      key.app = number
      if let isRevoked = try reader.isRevoked() { key.isRevoked = isRevoked }
      if let environment = try reader.environment() { key.environment = environment }
      changes[kid] = key
    }
    let certificates = try APNsAppRequest.certificates(body)
    let hasBroadcasts = try body.bool("broadcasts")
    for key in changes.values { accounts.add(key) }
    if let certificates { accounts.setCertificates(certificates, of: number) }
    if let hasBroadcasts { accounts.setBroadcasts(hasBroadcasts, of: number) }
    state.revision += 1
  }

  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue {
    guard let app = accounts.apps[number] else { return [:] }
    let keys = accounts.keys.values.filter { $0.app == number }.sorted { $0.kid < $1.kid }
    let secret = made.member("privateKeyPem").map { ["privateKeyPem": $0] as JSONValue } ?? [:]
    let keyList = keys.map { key -> JSONValue in
      [
        "kid": .string(key.kid), "scope": .string(key.scope.rawValue),
        "topics": .array(key.topics.map(JSONValue.string)),
        "environment": .string(key.environment.rawValue), "revoked": .bool(key.isRevoked),
        "publicKeyPem": .string(key.publicKeyPEM),
      ] + secret
    }
    return [
      "bundleId": .string(app.bundleID), "teamId": .string(app.teamID),
      "environment": .string(app.environment.rawValue), "keys": .array(keyList),
      "certificates": .array(app.certificates.map { ["sha256": .string($0)] }),
      "broadcasts": .bool(app.hasBroadcasts ?? true),
    ]
  }

  func removeApp(_ number: UInt32, in state: inout EmulatorState) {
    accounts.remove(app: number)
    channels.remove(app: number)
  }

  // MARK: Devices

  func freshHandle(after old: DeviceHandle?, in state: inout EmulatorState) -> DeviceHandle {
    let old: APNsHandle = if case .apns(let old)? = old { old } else { .none }
    while true {
      let token = APNsToken(&state.generator)
      if state.handles.device(token, in: old.environment) == nil {
        return .apns(APNsHandle(token: token, environment: old.environment, kind: old.kind))
      }
    }
  }

  func makeDevices(
    _ json: JSONValue, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(
      json, known: DeviceRequest.members + ["kind", "environment", "handle"])
    let wanted = try DeviceRequest(body, app: app)
    let scope = accounts.apps[app]?.environment ?? .both
    let kind = try body.word("kind", APNsKind.self) ?? .alert
    let handle = try body.object("handle", known: ["token", "environment"])
    let inHandle = try handle?.word("environment", APNsEnvironment.self)
    let inBody = try body.word("environment", APNsEnvironment.self)
    let environment = inHandle ?? inBody ?? (scope == .sandbox ? .sandbox : .production)
    guard scope.allows(environment) else {
      throw body.invalid("environment", "must be the app's: \(scope.rawValue)")
    }
    var fixed: DeviceHandle?
    if let handle, let text = try handle.string("token") {
      guard let token = APNsToken(text.utf8) else {
        throw handle.invalid("token", "must be 64 hex digits")
      }
      fixed = .apns(APNsHandle(token: token, environment: environment, kind: kind))
    }
    return try state.addDevices(wanted, fixed: fixed, like: .pattern(environment, kind))
  }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSONValue {
    guard case .apns(let handle) = handle else { return .null }
    return [
      "token": .string(handle.token.text), "environment": .string(handle.environment.rawValue),
    ]
  }

  func deviceJSON(_ index: Int, in state: EmulatorState) -> JSONValue {
    guard case .apns(let handle) = state.devices[index].handle else { return [:] }
    let place = APNsChannel.Place(app: state.devices[index].app, environment: handle.environment)
    let ids = channels.all(at: place).filter { $0.subscribers.contains(index) }.map(\.id)
    return ["channels": .array(ids.map(JSONValue.string))]
  }

  // MARK: State

  func reset(keepApps: Bool, in state: inout EmulatorState) {
    channels.removeAll()
    if !keepApps { accounts.forgetAll() }
  }

  func saved(in state: EmulatorState) -> [(key: String, value: any Encodable & Sendable)] {
    [
      ("apps", accounts.apps.values.sorted { $0.number < $1.number }),
      ("keys", accounts.keys.values.sorted { $0.kid < $1.kid }), ("channels", channels.all),
    ]
  }

  func restorer(
    _ saved: KeyedDecodingContainer<Snapshot.Key>
  ) throws -> @Sendable (inout EmulatorState) throws -> Void {
    let apps = try saved.decode([APNsApp].self, forKey: "apps")
    let keys = try saved.decode([APNsKey].self, forKey: "keys")
    let channels = try saved.decodeIfPresent([APNsChannel].self, forKey: "channels") ?? []
    for key in keys { _ = try P256PublicKey(pem: key.publicKeyPEM) }
    return { state in
      for app in apps {
        state.apps[app.number] = .apns
        self.accounts.add(app)
      }
      for key in keys { self.accounts.add(key) }
      for channel in channels {
        guard channel.subscribers.allSatisfy({ state.devices.devices.indices.contains($0) }) else {
          throw Snapshot.Damage(reason: "holds a channel with a subscriber that is no device")
        }
        self.channels.add(channel)
      }
    }
  }
}

extension DeviceHandle {
  /// A pattern for fresh handles of APNs.
  static func pattern(_ environment: APNsEnvironment, _ kind: APNsKind = .alert) -> Self {
    .apns(APNsHandle(token: APNsHandle.none.token, environment: environment, kind: kind))
  }
}

extension EmulatorServer {
  /// An APNs app with everything that a hub needs to push to it.
  package struct App: Sendable {
    package let appID: String
    package let bundleID: String
    package let teamID: String
    package let keyID: String
    /// The signing key as Apple hands it out: PEM PKCS#8.
    package let p8: String
  }

  /// The app with this bundle id whose key the emulator made; one is made if there is none.
  ///
  /// - Throws: `ControlError` in words for people; `EmulatorError` before the start.
  package func app(bundleID: String = "com.example.app") throws -> App {
    try with(APNsStandIn.self) { apns, state in
      func own() -> App? {
        for key in apns.accounts.keys.values.sorted(by: { $0.app < $1.app }) {
          if let p8 = key.privateKeyPEM, let app = apns.accounts.apps[key.app],
            app.bundleID == bundleID, !key.isRevoked
          {
            return App(
              appID: EmulatorState.appID(app.number), bundleID: bundleID, teamID: app.teamID,
              keyID: key.kid, p8: p8)
          }
        }
        return nil
      }
      if let own = own() { return own }
      _ = try apns.addApp(.init(bundleID: bundleID), in: &state)
      guard let made = own() else { throw ControlError.notFound("app '\(bundleID)'") }
      return made
    }
  }

  /// A virtual device.
  package struct VirtualDevice: Sendable {
    package let deviceID: String
    /// 64 lower-case hex digits.
    package let token: String
  }

  /// Makes devices that are online whether or not an event stream is open.
  package func makeDevices(
    app: App, count: Int = 1, environment: APNsEnvironment = .production
  ) throws -> [VirtualDevice] {
    try core().withState { state in
      var request = DeviceRequest(app: try state.appNumber(app.appID))
      request.count = max(0, count)
      let made = try state.addDevices(request, fixed: nil, like: .pattern(environment))
      return made.compactMap { index in
        guard case .apns(let handle) = state.devices[index].handle else { return nil }
        return VirtualDevice(
          deviceID: EmulatorState.deviceID(index), token: handle.token.text)
      }
    }
  }
}
