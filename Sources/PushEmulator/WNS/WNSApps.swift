import Wire

/// WNS at the control API.
extension WNSStandIn {
  /// A channel expires after 30 days (docs/protocol/push-services/wns.md, section 1).
  var handleLifetime: Int64? { 30 * 86_400 }

  private static var mark: String { "/?token=" }

  func freshText(after old: NamedHandle?, _ generator: inout SeededGenerator) -> String {
    "AwYAAA" + generator.base64URL(90)
  }

  func fault(inHandle text: String) -> String? {
    !text.isEmpty && text.utf8.count <= 1000
      && text.utf8.allSatisfy { $0.isBase64URL || "%.~".utf8.contains($0) }
      ? nil : "must be a channel URI that ends in '\(Self.mark)' and letters, digits, '-', '_', '%'"
  }

  /// A channel is identified by the text after `?token=`, verbatim.
  func handle(
    _ reader: JSONReader, in state: inout EmulatorState
  ) throws(ControlError) -> NamedHandle? {
    guard let uri = try reader.string("channelUri") else { return nil }
    let text = uri.firstRange(of: Self.mark).map { uri[$0.upperBound...].prefix { $0 != "&" } }
    let handle = NamedHandle(service: .wns, text: text.map(String.init) ?? uri)
    if let fault = fault(inHandle: handle.text) { throw reader.invalid("channelUri", fault) }
    return handle
  }

  func handleJSON(_ handle: NamedHandle, in state: EmulatorState) -> JSONValue {
    var json: JSONValue = [
      "channelUri": .string(state.addresses.origin(.wns) + Self.mark + handle.text)
    ]
    if state.addresses.proxy != nil {
      let origin = "https://db5p.notify.windows.com"
      json = json + ["publicChannelUri": .string(origin + Self.mark + handle.text)]
    }
    guard let device = state.handles.device(.wns, handle.text),
      state.devices[device].handle == .named(handle)
    else { return json }
    return json + ["expires": JSONValue(state.devices[device].expiresAt)]
  }

  // MARK: Apps

  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue) {
    let body = try JSONReader(json, known: ["pns", "packageSid", "secret", "entra"])
    let sid = try body.string("packageSid") ?? "ms-app://s-1-15-2-\(state.generator.digits(10))"
    guard sid.lowercased().hasPrefix("ms-app://"), sid.utf8.count <= 200 else {
      throw body.invalid("packageSid", "must begin with 'ms-app://'")
    }
    guard apps.named(sid.lowercased()) == nil else {
      throw .conflict("there is an app '\(sid)' already")
    }
    let secret = try body.string("secret") ?? state.generator.base64URL(32)
    let entra = try Self.entra(body)
    if let entra, apps.named(entra.name) != nil {
      throw .conflict("there is a client '\(entra.clientID)' of that tenant already")
    }
    let app = App(
      number: state.newApp(.wns), packageSID: sid, secret: secret, entra: entra)
    apps.add(app)
    let made: JSONValue = ["secret": .string(secret)]
    return (app.number, entra.map { made + ["entraSecret": .string($0.secret)] } ?? made)
  }

  private static func entra(_ body: JSONReader) throws(ControlError) -> App.Entra? {
    guard let entra = try body.object("entra", known: ["tenant", "clientId", "secret"]) else {
      return nil
    }
    return App.Entra(
      tenant: try entra.required("tenant"), clientID: try entra.required("clientId"),
      secret: try entra.required("secret"))
  }

  /// `secret` and `entra` replace the previous ones; `revokeTokens` revokes all access tokens.
  static let changeableMembers = ["secret", "entra", "revokeTokens"]

  func change(_ app: inout App, _ body: JSONReader) throws(ControlError) {
    app.secret = try body.string("secret") ?? app.secret
    app.entra = try Self.entra(body) ?? app.entra
    if let entra = app.entra, let other = apps.named(entra.name), other.number != app.number {
      throw .conflict("there is a client '\(entra.clientID)' of that tenant already")
    }
    if try body.bool("revokeTokens") ?? false { revokeTokens(of: app.number) }
  }

  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue {
    guard let app = apps[number] else { return [:] }
    let origin = state.addresses.origin(.wns)
    let json: JSONValue = [
      "packageSid": .string(app.packageSID), "tokenUrl": .string(origin + WNSRequest.livePath),
    ]
    guard let entra = app.entra else { return json }
    return json + [
      "entra": [
        "tenant": .string(entra.tenant), "clientId": .string(entra.clientID),
        "tokenUrl": .string(origin + WNSRequest.entraPath(tenant: entra.tenant)),
      ]
    ]
  }
}

extension EmulatorServer {
  /// A WNS app with everything that a hub's credential needs.
  package struct WindowsApp: Sendable {
    package let appID: String
    package let packageSID: String
    package let secret: String
    /// The URL that issues access tokens.
    package let tokenURL: String
  }

  /// As ``amazonApp()``.
  package func windowsApp() throws -> WindowsApp {
    try with(WNSStandIn.self) { wns, state in
      if wns.apps.first == nil {
        // The form that every real Package SID has.
        let sid = "ms-app://s-1-15-2-1234567890-1-2-3-4-5-6"
        _ = try wns.makeApp(["pns": "wns", "packageSid": .string(sid)], in: &state)
      }
      let app = try wns.firstApp(in: &state)
      return WindowsApp(
        appID: EmulatorState.appID(app.number), packageSID: app.packageSID, secret: app.secret,
        tokenURL: state.addresses.origin(.wns) + WNSRequest.livePath)
    }
  }
}
