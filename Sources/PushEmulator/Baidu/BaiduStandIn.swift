import Cryptography
import HTTP2
import Wire

extension EmulatorListener {
  package static let baidu = Self(.baidu, port: 9481)
}

/// Baidu Cloud Push, both of its APIs (docs/protocol/emulator.md, section 8). A device has two ids;
/// only that of the channel is unique. The emulator's lock guards its state; see `StandIn`.
final class BaiduStandIn: NamedStandIn, @unchecked Sendable {
  static let service = PushService.baidu
  static let listeners = [EmulatorListener.baidu]
  static let handleMembers = ["channelId", "userId"]

  /// An app as Baidu knows it; kept in the state file.
  struct App: ServiceApp {
    let number: UInt32
    let apiKey: String
    var secretKey: String

    var names: [String] { [apiKey] }
  }

  private let options: OtherServicesOptions
  private let serviceName = ServiceName(.baidu)
  var apps = AppTable<App>()
  private var rates = RateTable<UInt32>()

  init(_ options: EmulatorOptions) { self.options = options.others }

  func forgetDevices() { rates = RateTable() }

  // MARK: Requests

  func read(_ request: HTTP2ServerRequest) -> BaiduRequest { BaiduRequest(request) }

  func subject(
    _ request: BaiduRequest, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject {
    let channel = request.form?["channel_id"]
    return ServiceSubject(
      name: serviceName, app: channel.flatMap { app(ofHandle: $0, in: state) }, handle: channel,
      credential: request.form?["apikey"])
  }

  func answer(
    _ request: BaiduRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    var answer: ServiceAnswer
    var credential = request.form?["apikey"] == nil ? Journal.Credential.none : .refusedToken
    do throws(BaiduFault) {
      let form = try request.parameters()
      let app = try identify(request, form, now: now)
      credential = .accepted(keyID: app.apiKey)
      let message = try request.message(form)
      let device = try channel(message, of: app.number, now: now, in: state)
      guard rates.take(app.number, rate: options.rates["baidu"], now: now) else {
        throw BaiduFault(30699, "Requests Too Frequent")
      }
      let id = state.generator.digits(18)
      let parameters: JSONValue =
        request.version == .two
        ? ["success_amount": 1, "msgids": [.string(id)]]
        : ["msg_id": .string(id), "send_time": JSONValue(now / 1000)]
      answer = ServiceAnswer(
        .json(200, ["request_id": requestID(in: &state), "response_params": parameters]))
      answer.storeAction = state.take(
        notification(message, id: id, now: now, seq: state.lastRequest), for: device, now: now)
    } catch {
      answer = refusal(error, in: &state)
    }
    answer.credential = credential
    return answer
  }

  /// Authenticates the sender: key, signature, then time.
  private func identify(
    _ request: BaiduRequest, _ form: FormFields, now: Int64
  ) throws(BaiduFault) -> App {
    guard let key = form["apikey"], let sign = form["sign"] else {
      throw .parameter("apikey or sign is missing")
    }
    guard let timestamp = form["timestamp"].flatMap(DecimalText.read) else {
      throw .parameter("timestamp must be Unix seconds")
    }
    guard let app = apps.named(key), request.signature(secret: app.secretKey) == sign else {
      throw BaiduFault(30603, "Authentication Failed")
    }
    let seconds = now / 1000
    var isTimely = timestamp.subtractingReportingOverflow(seconds).partialValue.magnitude <= 600
    if let text = form["expires"] {
      guard let expires = DecimalText.read(text) else {
        throw .parameter("expires must be Unix seconds")
      }
      isTimely = expires >= seconds
    }
    guard isTimely else { throw BaiduFault(30606, "Request Expired") }
    return app
  }

  private func channel(
    _ message: BaiduRequest.Message, of app: UInt32, now: Int64, in state: EmulatorState
  ) throws(BaiduFault) -> Int {
    guard let found = state.find(.baidu, message.channel, now: now),
      state.devices[found.device].app == app,
      message.user == nil || message.user == found.handle.user
    else { throw BaiduFault(30608, "Bind Relation Not Found") }
    if found.isAlive { return found.device }
    if case .expired = found.registration { throw BaiduFault(30607, "Channel Token Timeout") }
    throw BaiduFault(30608, "Bind Relation Not Found")
  }

  private func notification(
    _ message: BaiduRequest.Message, id: String, now: Int64, seq: Int
  ) -> Notification {
    Notification(
      id: .word(id), receivedAt: now,
      headers: .fields(
        .baidu,
        [
          .init(name: "message_type", value: message.isNotification ? "1" : "0"),
          .init(name: "msg_keys", value: message.key ?? ""),
        ]), payload: Array(message.payload.utf8), urgency: .high, collapseKey: message.key,
      storableUntil: message.lifetime == 0 ? 0 : now + message.lifetime * 1000, shelf: .wide,
      requestSeq: seq)
  }

  // MARK: Refusals

  private func requestID(in state: inout EmulatorState) -> JSONValue {
    JSONValue(Int(state.generator.next() >> 34))
  }

  /// A refusal in Baidu's form.
  private func refusal(_ fault: BaiduFault, in state: inout EmulatorState) -> ServiceAnswer {
    let body: JSONValue = [
      "request_id": requestID(in: &state), "error_code": JSONValue(fault.code),
      "error_msg": .string(fault.message),
    ]
    return ServiceAnswer(.json(fault.status, body), reason: String(fault.code))
  }

  func oversized(
    _ request: BaiduRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    refusal(.parameter("the request is too large"), in: &state)
  }

  func response(
    to fault: FaultAction.Reply, _ request: BaiduRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    let usual = fault.status == 429 ? 30699 : fault.status >= 500 ? 30600 : 30602
    let code = fault.reason.flatMap(Int.init) ?? usual
    var response = refusal(BaiduFault(code, fault.reason ?? "by a fault"), in: &state).response
    response.status = fault.status
    return (response, String(code))
  }

  // MARK: Control

  func handleJSON(_ handle: NamedHandle, in state: EmulatorState) -> JSONValue {
    ["userId": JSONValue(handle.user), "channelId": .string(handle.text)]
  }

  func freshText(after old: NamedHandle?, _ generator: inout SeededGenerator) -> String {
    generator.digits(19)
  }

  func complete(
    _ handle: inout NamedHandle, after old: NamedHandle?, _ generator: inout SeededGenerator
  ) {
    handle.user = old?.user ?? generator.digits(18)
  }

  func fault(inHandle text: String) -> String? {
    text.utf8.count <= 200 && text.utf8.allSatisfy(\.isBase64URL)
      ? nil : "must be at most 200 letters, digits, '-' and '_'"
  }

  func handle(
    _ reader: JSONReader, in state: inout EmulatorState
  ) throws(ControlError) -> NamedHandle? {
    func id(_ member: String) throws(ControlError) -> String {
      let text = try reader.required(member)
      if let fault = fault(inHandle: text) { throw reader.invalid(member, fault) }
      return text
    }
    return NamedHandle(service: .baidu, text: try id("channelId"), user: try id("userId"))
  }

  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue) {
    let body = try JSONReader(json, known: ["pns", "apiKey", "secretKey"])
    let key = try body.string("apiKey") ?? state.generator.base64URL(24)
    guard !key.isEmpty, apps.named(key) == nil else {
      throw .conflict("there is an app with the key '\(key)' already")
    }
    let secret = try body.string("secretKey") ?? state.generator.base64URL(32)
    let app = App(number: state.newApp(.baidu), apiKey: key, secretKey: secret)
    apps.add(app)
    return (app.number, ["secretKey": .string(secret)])
  }

  /// `secretKey` replaces the previous key.
  static let changeableMembers = ["secretKey"]

  func change(_ app: inout App, _ body: JSONReader) throws(ControlError) {
    app.secretKey = try body.string("secretKey") ?? app.secretKey
  }

  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue {
    guard let app = apps[number] else { return [:] }
    let origin = state.addresses.origin(.baidu)
    return [
      "apiKey": .string(app.apiKey), "endpoint": .string(origin + BaiduRequest.path2),
      "endpointREST3": .string(origin + BaiduRequest.path3),
    ]
  }
}

extension EmulatorServer {
  /// Baidu keys with everything that a hub's credential needs.
  package struct BaiduKeys: Sendable {
    package let appID: String
    package let apiKey: String
    package let secretKey: String
    /// The endpoint of the older API.
    package let endpoint: String
  }

  /// As ``amazonApp()``.
  package func baiduKeys() throws -> BaiduKeys {
    try with(BaiduStandIn.self) { baidu, state in
      let app = try baidu.firstApp(in: &state)
      return BaiduKeys(
        appID: EmulatorState.appID(app.number), apiKey: app.apiKey, secretKey: app.secretKey,
        endpoint: state.addresses.origin(.baidu) + BaiduRequest.path2)
    }
  }
}
