/// Xiaomi at the control API.
struct XiaomiDesk: NamedHandleDesk {
  var service: PushService { .xiaomi }
  var handleMember: String { "regId" }

  func fault(inHandle text: String) -> String? {
    (1...200).contains(text.utf8.count) && !text.contains(",")
      ? nil : "must be 1 to 200 bytes without a comma"
  }

  func freshHandle(after old: NamedHandle?, in state: inout EmulatorState) -> NamedHandle {
    while true {
      let text = state.generator.base64URL(62) + "=="
      if state.handles.device(.xiaomi, text) == nil {
        return NamedHandle(service: .xiaomi, text: text)
      }
    }
  }

  func makeApp(
    _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: [JSON.Member]) {
    let body = try JSONReader(json, known: ["pns", "packageName", "appSecret"])
    let secret = try body.string("appSecret") ?? state.generator.base64URL(22) + "=="
    guard !secret.isEmpty, state.xiaomi.app(secret: secret) == nil else {
      throw .conflict("there is an app with that secret already")
    }
    let app = XiaomiApp(
      number: state.newApp(.xiaomi),
      packageName: try body.string("packageName") ?? "com.example.app", appSecret: secret)
    state.xiaomi.add(app)
    return (app.number, [.init(name: "appSecret", value: .string(secret))])
  }

  /// `appSecret` takes the place of the old.
  func changeApp(
    _ number: UInt32, _ json: JSON, in state: inout EmulatorState
  ) throws(ControlError) {
    let body = try JSONReader(json, known: ["appSecret"])
    guard var app = state.xiaomi.apps[number] else { return }
    app.appSecret = try body.string("appSecret") ?? app.appSecret
    if let other = state.xiaomi.app(secret: app.appSecret), other.number != number {
      throw .conflict("there is an app with that secret already")
    }
    state.xiaomi.add(app)
    state.revision += 1
  }

  func appMembers(
    _ number: UInt32, made: [JSON.Member], in state: EmulatorState
  ) -> [JSON.Member] {
    guard let app = state.xiaomi.apps[number] else { return [] }
    return [
      .init(name: "packageName", value: .string(app.packageName)),
      .init(name: "endpoint", value: .string(state.origins.first(.xiaomi))),
    ]
  }

  func removeApp(_ number: UInt32, from state: inout EmulatorState) {
    state.xiaomi.remove(app: number)
  }
}
