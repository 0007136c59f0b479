import Cryptography

/// APNs at the control API.
struct APNsDesk: ServiceDesk {
  var service: PushService { .apns }

  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member]) {
    let (number, made) = try state.addApp(try Self.app(json))
    guard let made else { return (number, []) }
    return (
      number,
      [
        .init(name: "kid", value: .string(made.kid)),
        .init(name: "privateKeyPem", value: .string(made.privateKeyPEM)),
      ]
    )
  }

  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) {
    try APNsAppChange(json).apply(to: &state, app: number)
  }

  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member] {
    guard let app = state.apns.apps[number] else { return [] }
    let keys = state.apns.keys.values.filter { $0.app == number }.sorted { $0.kid < $1.kid }
    let secret = made.first { $0.name == "privateKeyPem" }
    let keyList = keys.map { key -> JSON in
      let members: JSON = [
        "kid": .string(key.kid), "scope": .string(key.scope.rawValue),
        "topics": .array(key.topics.map(JSON.string)),
        "environment": .string(key.environment.rawValue), "revoked": .bool(key.isRevoked),
        "publicKeyPem": .string(key.publicKey.pem),
      ]
      return .object((members.members ?? []) + [secret].compactMap { $0 })
    }
    let members: JSON = [
      "bundleId": .string(app.bundleID), "teamId": .string(app.teamID),
      "environment": .string(app.environment.rawValue), "keys": .array(keyList),
      "certificates": .array(app.certificates.map { ["sha256": .string($0)] }),
      "broadcasts": .bool(app.hasBroadcasts),
    ]
    return members.members ?? []
  }

  func removeApp(_ number: UInt32, from state: inout EmulatorState) {
    state.apns.remove(app: number)
    state.channels.remove(app: number)
  }

  func kind(of handle: DeviceHandle) -> String? {
    if case .apns(let handle) = handle { handle.kind.rawValue } else { nil }
  }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON {
    guard case .apns(let handle) = handle else { return nil }
    return [
      "token": .string(handle.token.text), "environment": .string(handle.environment.rawValue),
    ]
  }

  /// APNs tokens are no names; see `EmulatorState.rotate`.
  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    NamedHandle(service: .apns, text: old?.text ?? "")
  }

  func makeDevices(
    _ json: JSON, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(
      json, known: DeviceRequest.members + ["kind", "environment", "handle"])
    let wanted = try DeviceRequest(body, app: app)
    let scope = state.apns.apps[app]?.environment ?? .both
    let kind = try body.word("kind", APNsKind.self) ?? .alert
    let handle = try body.object("handle", known: ["token", "environment"])
    let inHandle = try handle?.word("environment", APNsEnvironment.self)
    let inBody = try body.word("environment", APNsEnvironment.self)
    let environment = inHandle ?? inBody ?? (scope == .sandbox ? .sandbox : .production)
    guard scope.allows(environment) else {
      throw body.invalid("environment", "must be the app's: \(scope.rawValue)")
    }
    var fixed: APNsToken?
    if let handle, let text = try handle.string("token") {
      guard let token = APNsToken(text.utf8) else {
        throw handle.invalid("token", "must be 64 hex digits")
      }
      guard wanted.count == 1 else { throw body.invalid("count", "must be 1 with a fixed token") }
      fixed = token
    }
    return try state.addDevices(wanted, environment: environment, kind: kind, token: fixed)
  }
}
