/// WNS at the control API.
struct WNSDesk: NamedHandleDesk {
  var service: PushService { .wns }
  var handleMember: String { "channelUri" }
  /// A channel lives 30 days at most (wns.md, section 1).
  var handleLifetime: Int64? { 30 * 86_400 }

  private static let mark = "/?token="

  /// A channel is called by the text behind `?token=`, as it stands there.
  func handleText(of value: String) -> String {
    guard let found = value.firstRange(of: Self.mark) else { return value }
    return String(value[found.upperBound...].prefix { $0 != "&" })
  }

  func fault(inHandle text: String) -> String? {
    !text.isEmpty && text.utf8.count <= 1000
      && text.utf8.allSatisfy { FCMToken.isLetter($0) || "%.~".utf8.contains($0) }
      ? nil : "must be a channel URI that ends in '\(Self.mark)' and letters, digits, '-', '_', '%'"
  }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON {
    guard case .named(let named) = handle else { return nil }
    var members: [JSON.Member] = [
      .init(
        name: handleMember,
        value: .string(state.origins.first(.wns) + Self.mark + named.text))
    ]
    if let device = state.handles.device(.wns, named.text), state.devices[device].handle == handle {
      members.append(.init(name: "expires", value: .int(state.devices[device].expiresAt)))
    }
    return .object(members)
  }

  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    while true {
      let text = "AwYAAA" + state.generator.base64URL(90)
      if state.handles.device(.wns, text) == nil { return NamedHandle(service: .wns, text: text) }
    }
  }

  // MARK: Apps

  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member]) {
    let body = try JSONReader(json, known: ["pns", "packageSid", "secret", "entra"])
    let sid = try body.string("packageSid") ?? "ms-app://s-1-15-2-\(state.generator.digits(10))"
    guard sid.lowercased().hasPrefix("ms-app://"), sid.utf8.count <= 200 else {
      throw body.invalid("packageSid", "must begin with 'ms-app://'")
    }
    guard state.wns.app(package: sid) == nil else {
      throw .conflict("there is an app '\(sid)' already")
    }
    let secret = try body.string("secret") ?? state.generator.base64URL(32)
    let entra = try Self.entra(body)
    if let entra, state.wns.app(tenant: entra.tenant, client: entra.clientID) != nil {
      throw .conflict("there is a client '\(entra.clientID)' of that tenant already")
    }
    let app = WNSApp(
      number: state.newApp(.wns), packageSID: sid, secret: secret, entra: entra)
    state.wns.add(app)
    var made: [JSON.Member] = [.init(name: "secret", value: .string(secret))]
    if let entra { made.append(.init(name: "entraSecret", value: .string(entra.secret))) }
    return (app.number, made)
  }

  private static func entra(_ body: JSONReader) throws(ControlError) -> WNSApp.Entra? {
    guard let entra = try body.object("entra", known: ["tenant", "clientId", "secret"]) else {
      return nil
    }
    return WNSApp.Entra(
      tenant: try entra.required("tenant"), clientID: try entra.required("clientId"),
      secret: try entra.required("secret"))
  }

  /// `secret` and `entra` take the place of the old; `revokeTokens` ends all access tokens.
  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["secret", "entra", "revokeTokens"])
    guard var app = state.wns.apps[number] else { return }
    app.secret = try body.string("secret") ?? app.secret
    app.entra = try Self.entra(body) ?? app.entra
    if let entra = app.entra,
      let other = state.wns.app(tenant: entra.tenant, client: entra.clientID),
      other.number != number
    {
      throw .conflict("there is a client '\(entra.clientID)' of that tenant already")
    }
    if try body.bool("revokeTokens") ?? false { state.wns.revokeTokens(of: number) }
    state.wns.add(app)
    state.revision += 1
  }

  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member] {
    guard let app = state.wns.apps[number] else { return [] }
    let origin = state.origins.first(.wns)
    var members: [JSON.Member] = [
      .init(name: "packageSid", value: .string(app.packageSID)),
      .init(name: "tokenUrl", value: .string(origin + WNSRequest.livePath)),
    ]
    if let entra = app.entra {
      members.append(
        .init(
          name: "entra",
          value: [
            "tenant": .string(entra.tenant), "clientId": .string(entra.clientID),
            "tokenUrl": .string(origin + WNSRequest.entraPath(tenant: entra.tenant)),
          ]))
    }
    return members
  }

  func removeApp(_ number: UInt32, from state: inout EmulatorState) {
    state.wns.remove(app: number)
  }
}
