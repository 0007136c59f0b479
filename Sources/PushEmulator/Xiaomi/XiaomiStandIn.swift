import HTTP2
import Wire

extension EmulatorListener {
  package static let xiaomi = Self(.xiaomi, port: 9482)
}

/// Xiaomi Push (docs/protocol/emulator.md, section 8). The emulator's lock guards its state; see
/// `StandIn`.
final class XiaomiStandIn: NamedStandIn, @unchecked Sendable {
  static let service = PushService.xiaomi
  static let listeners = [EmulatorListener.xiaomi]
  static let handleMembers = ["regId"]

  /// An app as Xiaomi knows it; kept in the state file.
  struct App: ServiceApp {
    let number: UInt32
    let packageName: String
    var appSecret: String

    var names: [String] { [appSecret] }
  }

  private let options: OtherServicesOptions
  private let serviceName = ServiceName(.xiaomi)
  var apps = AppTable<App>()
  private var rates = RateTable<UInt32>()
  private var sent: [UInt32: (day: Int64, count: Int)] = [:]

  init(_ options: EmulatorOptions) { self.options = options.others }

  func forgetDevices() {
    rates = RateTable()
    sent = [:]
  }

  // MARK: Requests

  func read(_ request: HTTP2ServerRequest) -> XiaomiRequest { XiaomiRequest(request) }

  func subject(
    _ request: XiaomiRequest, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject {
    let app = request.secret.flatMap { apps.named($0) }
    // The secret itself must not be in the journal.
    return ServiceSubject(
      name: serviceName, app: app?.number, handle: request.form?["registration_id"],
      credential: app?.packageName)
  }

  func answer(
    _ request: XiaomiRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    guard request.isOfPath else {
      return ServiceAnswer(.init(status: 404), reason: "nothing there")
    }
    guard request.plain.method == "POST" else { return .onlyPost }
    guard let app = request.secret.flatMap({ apps.named($0) }) else {
      var answer = refusal(XiaomiFault(21301, "the secret is not accepted"), in: &state)
      if request.plain["authorization"] != nil { answer.credential = .refusedToken }
      return answer
    }
    var answer: ServiceAnswer
    do throws(XiaomiFault) {
      answer = try send(try request.message(now: now), of: app, now: now, in: &state)
    } catch {
      answer = refusal(error, in: &state)
    }
    answer.credential = .accepted(keyID: app.packageName)
    return answer
  }

  private func send(
    _ message: XiaomiRequest.Message, of app: App, now: Int64, in state: inout EmulatorState
  ) throws(XiaomiFault) -> ServiceAnswer {
    guard message.packages.isEmpty || message.packages.contains(app.packageName) else {
      throw XiaomiFault(22022, "the package name does not belong to the app")
    }
    guard rates.take(app.number, rate: options.rates["xiaomi"], now: now) else {
      throw XiaomiFault(10027, "calls come too fast")
    }
    guard count(message.ids.count, app: app.number, now: now) else {
      throw XiaomiFault(10034, "the day's quota is used up")
    }
    var good: [Int] = []
    var bad: [String] = []
    for id in message.ids {
      if let found = state.find(.xiaomi, id, now: now), found.isAlive,
        state.devices[found.device].app == app.number
      {
        good.append(found.device)
      } else {
        bad.append(id)
      }
    }
    if good.isEmpty, message.ids.count == 1 { try check(bad[0], of: app, now: now, in: state) }
    let id = "scm" + state.generator.base64URL(20)
    let data: JSONValue = ["id": .string(id)]
    let refused: JSONValue = ["bad_regids": .string(bad.joined(separator: ","))]
    var answer = ServiceAnswer(
      .json(
        200,
        [
          "result": "ok", "trace_id": traceID(in: &state), "code": 0,
          "data": bad.isEmpty ? data : data + refused, "description": "success",
          "info": .string("Received push messages for \(message.ids.count) REGID"),
        ]))
    let isLater = now < message.notBefore
    let notification = Notification(
      id: .word(id), receivedAt: now,
      headers: .fields(.xiaomi, message.fields.map { .init(name: $0.name, value: $0.value) }),
      payload: Array(message.payload.utf8), urgency: .high, collapseKey: message.key,
      // A message with its own time replaces another when it is shown, not before.
      storeKey: isLater ? .some(nil) : .none,
      storableUntil: max(now, message.notBefore) + message.lifetime,
      notBefore: isLater ? message.notBefore : 0, shelf: .wide, requestSeq: state.lastRequest)
    for device in good { answer.storeAction = state.take(notification, for: device, now: now) }
    return answer
  }

  /// Counts messages, unless the day's quota would be exceeded; a day begins at midnight in China.
  private func count(_ messages: Int, app: UInt32, now: Int64) -> Bool {
    guard let quota = options.dailyQuotas["xiaomi"] else { return true }
    let day = (now / 1000 + 8 * 3600) / 86_400
    let before = sent[app].map { $0.day == day ? $0.count : 0 } ?? 0
    guard before + messages <= quota else { return false }
    sent[app] = (day, before + messages)
    return true
  }

  /// Checks a single id: an unknown one and one that was offline for too long are refused by a
  /// code, one whose app is gone in `bad_regids` of a success.
  private func check(
    _ id: String, of app: App, now: Int64, in state: EmulatorState
  ) throws(XiaomiFault) {
    guard let found = state.find(.xiaomi, id, now: now),
      state.devices[found.device].app == app.number
    else { throw XiaomiFault(10029, "the registration id is not valid") }
    if case .expired = found.registration {
      throw XiaomiFault(66108, "the registration id has expired")
    }
  }

  // MARK: Refusals

  private func traceID(in state: inout EmulatorState) -> JSONValue {
    .string("Xcm" + state.generator.base64URL(20))
  }

  /// A refusal in Xiaomi's form.
  private func refusal(_ fault: XiaomiFault, in state: inout EmulatorState) -> ServiceAnswer {
    let body: JSONValue = [
      "result": "error", "reason": .string(fault.reason), "trace_id": traceID(in: &state),
      "code": JSONValue(fault.code), "description": .string(fault.reason),
    ]
    return ServiceAnswer(.json(200, body), reason: String(fault.code))
  }

  func oversized(
    _ request: XiaomiRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    refusal(XiaomiFault(65009, "the request is too large"), in: &state)
  }

  func response(
    to fault: FaultAction.Reply, _ request: XiaomiRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    // All faults of the service's own have status 200 and a code.
    let status = fault.status == 429 ? 200 : fault.status
    let usual = fault.status == 429 ? "10027" : nil
    guard let code = (fault.reason ?? usual).flatMap(Int.init) else {
      return (HTTP2ServerResponse(status: status), fault.reason)
    }
    var response = refusal(XiaomiFault(code, "by a fault"), in: &state).response
    response.status = status
    return (response, String(code))
  }

  // MARK: Control

  func fault(inHandle text: String) -> String? {
    (1...200).contains(text.utf8.count) && !text.contains(",")
      ? nil : "must be 1 to 200 bytes without a comma"
  }

  func freshText(after old: NamedHandle?, _ generator: inout SeededGenerator) -> String {
    generator.base64URL(62) + "=="
  }

  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue) {
    let body = try JSONReader(json, known: ["pns", "packageName", "appSecret"])
    let secret = try body.string("appSecret") ?? state.generator.base64URL(22) + "=="
    guard !secret.isEmpty, apps.named(secret) == nil else {
      throw .conflict("there is an app with that secret already")
    }
    let package = try body.string("packageName") ?? "com.example.app"
    let app = App(number: state.newApp(.xiaomi), packageName: package, appSecret: secret)
    apps.add(app)
    return (app.number, ["appSecret": .string(secret)])
  }

  /// `appSecret` replaces the previous secret.
  static let changeableMembers = ["appSecret"]

  func change(_ app: inout App, _ body: JSONReader) throws(ControlError) {
    app.appSecret = try body.string("appSecret") ?? app.appSecret
    if let other = apps.named(app.appSecret), other.number != app.number {
      throw .conflict("there is an app with that secret already")
    }
  }

  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue {
    guard let app = apps[number] else { return [:] }
    return [
      "packageName": .string(app.packageName),
      "endpoint": .string(state.addresses.origin(.xiaomi)),
    ]
  }
}

extension EmulatorServer {
  /// A Xiaomi app with everything that a hub's credential needs.
  package struct XiaomiSecret: Sendable {
    package let appID: String
    package let appSecret: String
    package let endpoint: String
  }

  /// As ``amazonApp()``.
  package func xiaomiSecret() throws -> XiaomiSecret {
    try with(XiaomiStandIn.self) { xiaomi, state in
      let app = try xiaomi.firstApp(in: &state)
      return XiaomiSecret(
        appID: EmulatorState.appID(app.number), appSecret: app.appSecret,
        endpoint: state.addresses.origin(.xiaomi))
    }
  }
}
