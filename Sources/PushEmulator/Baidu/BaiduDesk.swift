/// Baidu at the control API. A device is called by two ids; the channel's alone is unique.
struct BaiduDesk: ServiceDesk {
  var service: PushService { .baidu }

  func kind(of handle: DeviceHandle) -> String? { nil }

  func handleJSON(_ handle: DeviceHandle, in state: EmulatorState) -> JSON {
    guard case .named(let handle) = handle else { return nil }
    return ["userId": JSON(handle.user), "channelId": .string(handle.text)]
  }

  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    while true {
      let channel = state.generator.digits(19)
      let user = old?.user ?? state.generator.digits(18)
      if state.handles.device(.baidu, channel) == nil {
        return NamedHandle(service: .baidu, text: channel, user: user)
      }
    }
  }

  func makeDevices(
    _ json: JSON, app: UInt32, in state: inout EmulatorState
  ) throws(ControlError) -> Range<Int> {
    let body = try JSONReader(json, known: DeviceRequest.members + ["handle"])
    let request = try DeviceRequest(body, app: app)
    var fixed: NamedHandle?
    if let reader = try body.object("handle", known: ["userId", "channelId"]) {
      fixed = NamedHandle(
        service: .baidu, text: try Self.id(reader, "channelId"),
        user: try Self.id(reader, "userId"))
    }
    return try state.addDevices(request, fixed: fixed)
  }

  private static func id(_ reader: JSONReader, _ member: String) throws(ControlError) -> String {
    let text = try reader.required(member)
    guard text.utf8.count <= 200, text.utf8.allSatisfy(FCMToken.isLetter) else {
      throw reader.invalid(member, "must be at most 200 letters, digits, '-' and '_'")
    }
    return text
  }

  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member]) {
    let body = try JSONReader(json, known: ["pns", "apiKey", "secretKey"])
    let key = try body.string("apiKey") ?? state.generator.base64URL(24)
    guard !key.isEmpty, state.baidu.app(key: key) == nil else {
      throw .conflict("there is an app with the key '\(key)' already")
    }
    let secret = try body.string("secretKey") ?? state.generator.base64URL(32)
    let app = BaiduApp(number: state.newApp(.baidu), apiKey: key, secretKey: secret)
    state.baidu.add(app)
    return (app.number, [.init(name: "secretKey", value: .string(secret))])
  }

  /// `secretKey` takes the place of the old.
  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["secretKey"])
    guard var app = state.baidu.apps[number] else { return }
    app.secretKey = try body.string("secretKey") ?? app.secretKey
    state.baidu.add(app)
    state.revision += 1
  }

  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member] {
    guard let app = state.baidu.apps[number] else { return [] }
    let origin = state.origins.first(.baidu)
    return [
      .init(name: "apiKey", value: .string(app.apiKey)),
      .init(name: "endpoint", value: .string(origin + BaiduRequest.path2)),
      .init(name: "endpointREST3", value: .string(origin + BaiduRequest.path3)),
    ]
  }

  func removeApp(_ number: UInt32, from state: inout EmulatorState) {
    state.baidu.remove(app: number)
  }
}
