import Cryptography
import HTTP2
import HTTPServer
import Wire

extension EmulatorListener {
  package static let adm = Self(.adm, port: 9480)
}

/// ADM and its token service (docs/protocol/emulator.md, section 8). The emulator's lock guards its
/// state; see `StandIn`.
final class ADMStandIn: NamedStandIn, @unchecked Sendable {
  static let service = PushService.adm
  static let listeners = [EmulatorListener.adm]
  static let handleMembers = ["registrationId"]
  private static let scope = "messaging:push"

  /// An app as Amazon knows it; kept in the state file.
  struct App: ServiceApp {
    let number: UInt32
    let clientID: String
    var clientSecret: String

    var names: [String] { [clientID] }
  }

  private let options: OtherServicesOptions
  private let serviceName = ServiceName(.adm)
  var apps = AppTable<App>()
  private var tokens = AccessTokens()
  private var rates = RateTable<UInt32>()

  init(_ options: EmulatorOptions) { self.options = options.others }

  func revokeTokens(of app: UInt32) { tokens.revoke(app: app) }

  func forgetDevices() { rates = RateTable() }

  // MARK: Requests

  func read(_ request: HTTP2ServerRequest) -> ADMRequest { ADMRequest(request) }

  func subject(
    _ request: ADMRequest, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject {
    var subject = ServiceSubject(name: serviceName)
    if case .message(let id) = request.target {
      subject.handle = id
      subject.app = app(ofHandle: id, in: state)
    }
    let token = request.plain.authorization("bearer")
    subject.credential =
      token.flatMap { tokens.token($0, now: state.clock.now)?.clientID }
      ?? request.plain.form?["client_id"]
    return subject
  }

  func answer(
    _ request: ADMRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    guard request.target != .nothing else {
      return ServiceAnswer(.init(status: 404), reason: "nothing there")
    }
    guard request.plain.method == "POST" else { return .onlyPost }
    if case .message(let id) = request.target {
      return take(request, to: id, now: now, in: &state)
    }
    do throws(TokenRefusal) {
      return try grant(request.plain, now: now, in: &state)
    } catch {
      return error.answer
    }
  }

  private func grant(
    _ request: PlainRequest, now: Int64, in state: inout EmulatorState
  ) throws(TokenRefusal) -> ServiceAnswer {
    let wanted = try ClientCredentials(request)
    guard let app = apps.named(wanted.clientID), app.clientSecret == wanted.secret else {
      throw .invalidClient(401)
    }
    guard wanted.scope == Self.scope else { throw .invalidScope }
    let lifetime = options.admTokenLifetime
    let text = "Atc|" + state.generator.base64URL(100)
    tokens.remember(
      text,
      .init(
        app: app.number, clientID: wanted.clientID, scopes: [Self.scope],
        expiresAt: now + lifetime * 1000), now: now)
    return ServiceAnswer(
      .json(
        200,
        [
          "access_token": .string(text), "expires_in": JSONValue(lifetime),
          "scope": .string(Self.scope), "token_type": "Bearer",
        ]))
  }

  /// Checks in this order: token, form, registration, rate.
  private func take(
    _ request: ADMRequest, to id: String, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    guard let bearer = request.plain.authorization("bearer"),
      let token = tokens.token(bearer, now: now), let app = token.app
    else {
      var answer = refusal(.accessTokenExpired, in: &state)
      if request.plain["authorization"] != nil { answer.credential = .refusedToken }
      return answer
    }
    var answer: ServiceAnswer
    do throws(ADMReason) {
      let message = try request.message()
      let (device, current) = try registration(id, of: app, now: now, in: state)
      guard rates.take(app, rate: options.rates["adm"], now: now) else {
        throw .maxRateExceeded
      }
      let messageID = state.generator.uuid().text
      answer = ServiceAnswer(
        .json(
          200, ["registrationID": .string(current)],
          fields: [
            ("x-amzn-requestid", messageID), ("x-amzn-data-md5", message.checksum),
            ("x-amzn-type-version", "com.amazon.device.messaging.ADMSendResult@1.0"),
          ]))
      let notification = Notification(
        id: .word(messageID), receivedAt: now, headers: .fields(.adm, []),
        payload: request.plain.body, urgency: message.isUrgent ? .high : .normal,
        collapseKey: message.consolidationKey,
        storableUntil: now + message.expiresAfter * 1000, shelf: .wide,
        requestSeq: state.lastRequest)
      answer.storeAction = state.take(notification, for: device, now: now)
    } catch {
      answer = refusal(error, in: &state)
    }
    answer.credential = .accepted(keyID: token.clientID)
    return answer
  }

  /// A device, and its present id: a former one still reaches it, and the reply contains the new
  /// one.
  private func registration(
    _ id: String, of app: UInt32, now: Int64, in state: EmulatorState
  ) throws(ADMReason) -> (device: Int, current: String) {
    guard let found = state.find(.adm, id, now: now), state.devices[found.device].app == app else {
      throw .invalidRegistrationID
    }
    let isFormer = found.current.text != id
    let isLive =
      isFormer ? state.devices[found.device].registration(at: now) == .registered : found.isAlive
    guard isLive else { throw .unregistered }
    return (found.device, found.current.text)
  }

  // MARK: Refusals

  /// A refusal with ADM's own fields.
  private func refusal(_ reason: ADMReason, in state: inout EmulatorState) -> ServiceAnswer {
    var fields = [("x-amzn-requestid", state.generator.uuid().text)]
    if reason == .maxRateExceeded { fields.append(("retry-after", "60")) }
    return ServiceAnswer(
      .json(reason.status, ["reason": .string(reason.rawValue)], fields: fields),
      reason: reason.rawValue)
  }

  func oversized(
    _ request: ADMRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    refusal(.messageTooLarge, in: &state)
  }

  func response(
    to fault: FaultAction.Reply, _ request: ADMRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if request.target == .token { return TokenRefusal(fault).response }
    let reason = fault.reason ?? ADMReason.usual(for: fault.status)?.rawValue
    return (.json(fault.status, reason.map { ["reason": .string($0)] } ?? [:]), reason)
  }

  // MARK: Control

  func fault(inHandle text: String) -> String? {
    (1...2000).contains(text.utf8.count) ? nil : "must be 1 to 2000 bytes"
  }

  func freshText(after old: NamedHandle?, _ generator: inout SeededGenerator) -> String {
    "amzn1.adm-registration.v3." + generator.base64URL(120) + "="
  }

  func makeApp(
    _ json: JSONValue, in state: inout EmulatorState
  ) throws(ControlError) -> (number: UInt32, made: JSONValue) {
    let body = try JSONReader(json, known: ["pns", "clientId", "clientSecret"])
    let client =
      try body.string("clientId")
      ?? "amzn1.application-oa2-client.\(state.generator.hex(32))"
    guard !client.isEmpty, apps.named(client) == nil else {
      throw .conflict("there is a client '\(client)' already")
    }
    let secret = try body.string("clientSecret") ?? state.generator.hex(64)
    let app = App(number: state.newApp(.adm), clientID: client, clientSecret: secret)
    apps.add(app)
    return (app.number, ["clientSecret": .string(secret)])
  }

  /// `clientSecret` replaces the previous secret; `revokeTokens` revokes all access tokens.
  static let changeableMembers = ["clientSecret", "revokeTokens"]

  func change(_ app: inout App, _ body: JSONReader) throws(ControlError) {
    app.clientSecret = try body.string("clientSecret") ?? app.clientSecret
    if try body.bool("revokeTokens") ?? false { tokens.revoke(app: app.number) }
  }

  func appJSON(_ number: UInt32, made: JSONValue, in state: EmulatorState) -> JSONValue {
    guard let app = apps[number] else { return [:] }
    return [
      "clientId": .string(app.clientID),
      "tokenUrl": .string(state.addresses.origin(.adm) + ADMRequest.tokenPath),
    ]
  }
}

extension EmulatorServer {
  /// An ADM app with everything that a hub's credential needs.
  package struct AmazonApp: Sendable {
    package let appID: String
    package let clientID: String
    package let clientSecret: String
    package let tokenURL: String
    /// The URL, with `{0}` in place of the registration id.
    package let sendURLTemplate: String
  }

  /// The first app of the emulator; one is made if there is none.
  ///
  /// - Throws: `ControlError` in words for people; `EmulatorError` before the start.
  package func amazonApp() throws -> AmazonApp {
    try with(ADMStandIn.self) { adm, state in
      let app = try adm.firstApp(in: &state)
      let origin = state.addresses.origin(.adm)
      return AmazonApp(
        appID: EmulatorState.appID(app.number), clientID: app.clientID,
        clientSecret: app.clientSecret, tokenURL: origin + ADMRequest.tokenPath,
        sendURLTemplate: origin + "/messaging/registrations/{0}/messages")
    }
  }
}
