/// ADM at the control API.
struct ADMDesk: NamedHandleDesk {
  var service: PushService { .adm }
  var handleMember: String { "registrationId" }

  func fault(inHandle text: String) -> String? {
    (1...2000).contains(text.utf8.count) ? nil : "must be 1 to 2000 bytes"
  }

  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    while true {
      let text = "amzn1.adm-registration.v3." + state.generator.base64URL(120) + "="
      if state.handles.device(.adm, text) == nil { return NamedHandle(service: .adm, text: text) }
    }
  }

  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member]) {
    let body = try JSONReader(json, known: ["pns", "clientId", "clientSecret"])
    let client =
      try body.string("clientId")
      ?? "amzn1.application-oa2-client.\(state.generator.hex(32))"
    guard !client.isEmpty, state.adm.app(client: client) == nil else {
      throw .conflict("there is a client '\(client)' already")
    }
    let secret = try body.string("clientSecret") ?? state.generator.hex(64)
    let app = ADMApp(number: state.newApp(.adm), clientID: client, clientSecret: secret)
    state.adm.add(app)
    return (app.number, [.init(name: "clientSecret", value: .string(secret))])
  }

  /// `clientSecret` takes the place of the old; `revokeTokens` ends all access tokens.
  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["clientSecret", "revokeTokens"])
    guard var app = state.adm.apps[number] else { return }
    app.clientSecret = try body.string("clientSecret") ?? app.clientSecret
    if try body.bool("revokeTokens") ?? false { state.adm.tokens.revoke(app: number) }
    state.adm.add(app)
    state.revision += 1
  }

  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member] {
    guard let app = state.adm.apps[number] else { return [] }
    return [
      .init(name: "clientId", value: .string(app.clientID)),
      .init(
        name: "tokenUrl", value: .string(state.origins.first(.adm) + ADMRequest.tokenPath)),
    ]
  }

  func removeApp(_ number: UInt32, from state: inout EmulatorState) {
    state.adm.remove(app: number)
  }
}
