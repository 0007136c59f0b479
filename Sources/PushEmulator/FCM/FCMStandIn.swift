import Cryptography
import HTTP2
import Wire

extension EmulatorListener {
  /// FCM's send and token endpoints, HTTP/2.
  package static let fcm = Self(.fcm, "http2", port: 9450)
  /// The same over HTTP/1.1.
  package static let fcmHTTP1 = Self(.fcm, port: 9451)
}

/// The strictness of the FCM stand-in (docs/protocol/emulator.md, section 5).
package struct FCMOptions: Sendable {
  /// Seconds that an assertion's `iat` may lie ahead of the clock.
  package var oauthSkew: Int64 = 300
  /// Values of an assertion's `aud` that are accepted besides the stand-in's own token URLs.
  package var tokenAudiences = googleTokenURIs
  /// Lifetime of an access token in seconds.
  package var tokenLifetime: Int64 = 3599
  /// Whether a device is limited to 240 messages a minute and 5000 an hour.
  package var perDeviceRate = false
  /// Whether a device is limited to 20 collapsible messages at once and one in 3 minutes after
  /// that.
  package var collapsibleRate = false
  /// Messages per minute and project; `nil` switches the limit off. The real one is 600 000.
  package var projectRate: Double?

  /// The addresses of Google's token service, of which a key file has one as `token_uri`.
  static let googleTokenURIs = [
    "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token",
    "https://www.googleapis.com/oauth2/v4/token",
  ]

  package init() {}
}

/// FCM's storage limits for a device that is offline (docs/protocol/push-services/fcm.md, section
/// 5).
enum FCMShelves {
  /// 100 messages; one more, and all are discarded.
  static let others = Shelf(number: 0, limit: 100, overflow: .dropsAll)
  /// The newest message of each of 4 collapse keys.
  static let collapsible = Shelf(number: 1, limit: 4, overflow: .dropsOldest)
}

/// FCM HTTP v1 and Google's token endpoint (docs/protocol/emulator.md, section 5). The emulator's
/// lock guards its state; see `StandIn`.
final class FCMStandIn: NamedStandIn, @unchecked Sendable {
  static let service = PushService.fcm
  static let listeners: [EmulatorListener] = [.fcm, .fcmHTTP1]
  static let hasTokenName = true
  /// A thousand registration tokens of the Instance ID API.
  static let maxBody = 256 * 1024
  static let handleMembers = ["token", "fid"]

  let options: FCMOptions
  private let acceptsAnyCredential: Bool
  private let serviceName = ServiceName(.fcm)
  private let tokenServiceName = ServiceName(.fcm, ofTokens: true)
  var apps = AppTable<App>()
  /// By the app's number. Beside the apps, because a copy of an app would make each change copy
  /// the subscriptions, too.
  var topics: [UInt32: FCMTopics] = [:]
  private var tokens = AccessTokens()
  /// Rates by device, for devices that were sent to while a limit was on.
  private var deviceRates: [Int: DeviceRate] = [:]
  private var projectRates = RateTable<UInt32>()

  private struct DeviceRate {
    var minute = TokenBucket()
    var hour = TokenBucket()
    var collapsible = TokenBucket()
  }

  init(_ options: EmulatorOptions) {
    self.options = options.fcm
    acceptsAnyCredential = options.acceptsAnyCredential
  }

  func revokeTokens(of app: UInt32) { tokens.revoke(app: app) }

  func forgetDevices() {
    deviceRates = [:]
    projectRates = RateTable()
    topics = [:]
  }

  func removeApp(_ number: UInt32, in state: inout EmulatorState) {
    apps.remove(number)
    topics[number] = nil
    revokeTokens(of: number)
  }

  func saved(in state: EmulatorState) -> [(key: String, value: any Encodable & Sendable)] {
    let saved = apps.all.values.sorted { $0.number < $1.number }.map { app in
      var app = app
      app.subscriptions = topics[app.number]
      return app
    }
    return [(Self.stateKey, saved)]
  }

  func restore(_ app: App) {
    var app = app
    topics[app.number] = app.subscriptions.take()
    apps.add(app)
  }

  // MARK: Requests

  struct Reading: Sendable {
    enum Path: Sendable, Equatable {
      case token
      case send(project: String)
      case topics(FCMTopicRequest)
      case other
    }

    var path = Path.other
    var isPost = false
    /// The bearer token.
    var bearer: String?
    var contentType: String?
    /// The form, at the token endpoint.
    var form = FormFields([])
    /// The message, at the send endpoint.
    var message: Result<FCMMessage, FCMRefusal>?
  }

  /// Google's Web Push service shares the host of FCM.
  func guest(for request: HTTP2ServerRequest) -> PushService? {
    WebPushStandIn.googlePaths.contains { request.path.hasPrefix($0) } ? .webpush : nil
  }

  func read(_ request: HTTP2ServerRequest) -> Reading {
    var reading = Reading()
    reading.path = Self.path(request)
    reading.isPost = request.method == "POST"
    reading.bearer = request.fields.first("authorization")?.credentials("bearer")
    reading.contentType = request.fields.first("content-type")
    switch reading.path {
    case .token: reading.form = FormFields(request.body)
    case .send:
      do throws(FCMRefusal) {
        let message = try FCMMessage(request.body, contentType: reading.contentType)
        reading.message = .success(message)
      } catch {
        reading.message = .failure(error)
      }
    case .topics, .other: break
    }
    return reading
  }

  /// `/token`, `/v1/projects/{p}/messages:send` with any query, or a path of subscriptions; at a
  /// host of Google's, what that serves.
  private static func path(_ request: HTTP2ServerRequest) -> Reading.Path {
    let path = request.path.prefix { $0 != "?" }
    let host = request.publicHost?.name
    let isToken =
      host.map { FCMOptions.googleTokenURIs.contains("https://\($0)\(path)") } ?? (path == "/token")
    if isToken { return .token }
    let own = path.hasPrefix("/iid/") ? "iid.googleapis.com" : "fcm.googleapis.com"
    guard host == nil || host == own else { return .other }
    let start = "/v1/projects/"
    let end = "/messages:send"
    guard path.hasPrefix(start), path.hasSuffix(end), path.utf8.count > start.count + end.count
    else { return FCMTopicRequest(request).map(Reading.Path.topics) ?? .other }
    let project = path.dropFirst(start.count).dropLast(end.count)
    return project.contains("/") ? .other : .send(project: String(project))
  }

  func subject(
    _ reading: Reading, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject {
    if reading.path == .token { return ServiceSubject(name: tokenServiceName) }
    var subject = ServiceSubject(name: serviceName)
    switch reading.path {
    case .send(let project):
      subject.app = apps.named(project)?.number
      if case .success(let message) = reading.message { subject.handle = message.handle }
    case .topics(let request): subject.handle = request.handle
    default: return subject
    }
    // The device's own app, in case another project's credential is used.
    if let handle = subject.handle {
      subject.app = app(ofHandle: handle, in: state) ?? subject.app
    }
    subject.credential = reading.bearer.flatMap {
      tokens.token($0, now: state.clock.now)?.clientID
    }
    return subject
  }

  func answer(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    if reading.path == .token {
      do throws(TokenRefusal) {
        return try grant(reading, now: now, in: &state)
      } catch {
        return error.answer
      }
    }
    var credential = Journal.Credential.none
    var answer: ServiceAnswer
    do throws(FCMRefusal) {
      if case .topics(let request) = reading.path {
        answer = try self.answer(
          request, bearer: reading.bearer, now: now, credential: &credential, in: &state)
      } else {
        answer = try send(reading, now: now, credential: &credential, in: &state)
      }
    } catch {
      if reading.bearer != nil, case .none = credential { credential = .refusedToken }
      answer = ServiceAnswer(error.response, reason: error.reason)
    }
    answer.credential = credential
    return answer
  }

  func oversized(
    _ reading: Reading, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    let refusal = FCMRefusal(
      status: 413, word: "INVALID_ARGUMENT", message: "Request payload is too large.")
    return ServiceAnswer(refusal.response, reason: refusal.reason)
  }

  func fields(
    ofGivenBody reading: Reading, in state: inout EmulatorState
  ) -> [(name: String, value: String)] { [("content-type", "application/json")] }

  func response(
    to fault: FaultAction.Reply, _ reading: Reading, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    if reading.path == .token { return TokenRefusal(fault).response }
    if fault.status < 300 { return (.json(fault.status, [:]), fault.reason) }
    let refusal = FCMRefusal(fault: fault.status, reason: fault.reason)
    return (refusal.response, refusal.reason)
  }

  // MARK: Messages

  /// Handles a message, from the first check to the store (docs/protocol/emulator.md, section 5.2).
  private func send(
    _ reading: Reading, now: Int64, credential: inout Journal.Credential,
    in state: inout EmulatorState
  ) throws(FCMRefusal) -> ServiceAnswer {
    guard case .send(let project) = reading.path, reading.isPost else {
      throw .init(status: 404, word: "NOT_FOUND", message: "Method not found.")
    }
    let app = try app(
      reading.bearer, project: project, now: now, credential: &credential, in: state)
    let message = try message(reading)
    func answer(_ id: String) -> ServiceAnswer {
      ServiceAnswer(.json(200, ["name": .string("projects/\(project)/messages/" + id)]))
    }
    let ttl = message.timeToLive ?? FCMMessage.longestTTL
    let condition: FCMCondition? =
      switch message.target {
      case .topic(let name): .topic(name)
      case .condition(let condition): condition
      case .token, .fid: nil
      }
    if let condition {
      if message.isValidateOnly { return answer("fake_message_id") }
      let id = String(state.generator.next())
      let notification = Self.notification(
        message, id: id, from: message.handle ?? app.senderID, ttl: ttl, now: now,
        requestSeq: state.lastRequest)
      var accepted = answer(id)
      let (recipients, action) = fanOut(notification, to: condition, of: app, now: now, in: &state)
      (accepted.recipients, accepted.storeAction) = (recipients, action)
      return accepted
    }
    let device = try device(of: app, message, now: now, in: state)
    if message.isValidateOnly { return answer("fake_message_id") }
    guard
      isWithinRates(
        device: device, app: app.number, isCollapsible: message.collapseKey != nil && ttl > 0,
        now: now)
    else { throw .fcm("QUOTA_EXCEEDED", "Quota exceeded.", retryAfter: 60) }
    let id = "0:\(now * 1000 + Int64(state.lastRequest % 1000))%\(state.generator.hex(16))"
    let notification = Self.notification(
      message, id: id, from: app.senderID, ttl: ttl, now: now, requestSeq: state.lastRequest)
    var accepted = answer(id)
    accepted.storeAction = state.take(notification, for: device, now: now)
    return accepted
  }

  /// Authenticates the sender for a project.
  ///
  /// - Parameter project: `nil` is the sender's own; where it may use all, that of `handle`.
  func app(
    _ bearer: String?, project: String?, of handle: String? = nil, now: Int64,
    credential: inout Journal.Credential, in state: EmulatorState
  ) throws(FCMRefusal) -> App {
    guard let bearer, let token = tokens.token(bearer, now: now) else { throw .unauthenticated }
    let own = token.app ?? handle.flatMap { app(ofHandle: $0, in: state) }
    let project = project ?? own.flatMap { apps[$0]?.projectID } ?? ""
    guard let app = apps.named(project), token.app == nil || app.number == token.app else {
      throw .init(
        status: 403, word: "PERMISSION_DENIED",
        message: "Permission 'cloudmessaging.messages.create' denied on resource "
          + "'//cloudresourcemanager.googleapis.com/projects/\(project)' (or it may not exist)."
          + (token.app == nil ? " The emulator makes projects by POST /v1/apps." : ""))
    }
    credential = Self.credential(token.clientID, scopes: token.scopes)
    return app
  }

  /// Checks the message: members, target, values, size.
  private func message(_ reading: Reading) throws(FCMRefusal) -> FCMMessage {
    guard let message = reading.message else {
      throw .badRequest("message", "Invalid value at 'message': a message is required.")
    }
    return try message.get()
  }

  /// The device that the target names.
  private func device(
    of app: App, _ message: FCMMessage, now: Int64, in state: EmulatorState
  ) throws(FCMRefusal) -> Int {
    if case .fid(let fid) = message.target {
      guard fid.utf8.count <= 256,
        fid.utf8.allSatisfy({ $0.isBase64URL || $0 == UInt8(ascii: ":") })
      else {
        throw .badRequest("message.fid", "Invalid value at 'message.fid': no installation id")
      }
      guard FCMToken.isInstallationID(fid) else {
        throw .fcm("UNREGISTERED", "Requested entity was not found.")
      }
    }
    let device = try device(of: app, message.handle ?? "", now: now, in: state)
    if let package = message.restrictedPackage, package != app.packageName {
      throw .fcm(
        "INVALID_ARGUMENT",
        "The registration token does not match the restricted package name.")
    }
    return device
  }

  /// The device with a handle. It is registered either by its token or by its installation id, and
  /// no longer has the other; where a token is asked for, an id is taken during the transition.
  func device(
    of app: App, _ handle: String, now: Int64, in state: EmulatorState
  ) throws(FCMRefusal) -> Int {
    guard FCMToken.isWellFormed(handle) || FCMToken.isInstallationID(handle) else {
      throw .fcm(
        "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token")
    }
    let found = state.find(.fcm, handle, now: now)
    if let found, state.devices[found.device].app != app.number {
      throw .fcm("SENDER_ID_MISMATCH", "SenderId mismatch")
    }
    guard let found, found.isAlive else {
      throw .fcm("UNREGISTERED", "Requested entity was not found.")
    }
    return found.device
  }

  /// Whether the message is within the enabled limits (docs/protocol/push-services/fcm.md, section
  /// 5).
  private func isWithinRates(
    device: Int, app: UInt32, isCollapsible: Bool, now: Int64
  ) -> Bool {
    let perMinute = options.projectRate
    guard
      projectRates.take(
        app, rate: perMinute.map { $0 / 60 }, burst: perMinute.map { max(1, $0) }, now: now)
    else { return false }
    if options.perDeviceRate {
      var rates = deviceRates[device] ?? DeviceRate()
      let isWithin =
        rates.minute.take(rate: 4, burst: 240, now: now)
        && rates.hour.take(rate: 5000 / 3600, burst: 5000, now: now)
      deviceRates[device] = rates
      if !isWithin { return false }
    }
    if options.collapsibleRate, isCollapsible {
      return deviceRates[device, default: DeviceRate()].collapsible.take(
        rate: 1 / 180, burst: 20, now: now)
    }
    return true
  }

  private static func notification(
    _ message: FCMMessage, id: String, from sender: String, ttl: Int64, now: Int64,
    requestSeq: Int
  ) -> Notification {
    var fields: [Notification.Field] = [
      .init(name: "from", value: sender),
      .init(name: "priority", value: message.isHighPriority ? "HIGH" : "NORMAL"),
      .init(name: "ttl", value: "\(ttl / 1000)s"),
    ]
    if let key = message.collapseKey { fields.append(.init(name: "collapse_key", value: key)) }
    return Notification(
      id: .word(id), receivedAt: now, headers: .fields(.fcm, fields), payload: message.payload,
      urgency: message.isHighPriority ? .high : .normal, collapseKey: message.collapseKey,
      storableUntil: ttl > 0 ? now + ttl : 0,
      shelf: message.collapseKey == nil ? FCMShelves.others : FCMShelves.collapsible,
      requestSeq: requestSeq)
  }

  // MARK: Tokens

  /// Scopes that allow sending.
  private static let sendScopes = [
    "https://www.googleapis.com/auth/firebase.messaging",
    "https://www.googleapis.com/auth/cloud-platform",
  ]

  private static func credential(_ client: String, scopes: [String]) -> Journal.Credential {
    .accepted(keyID: client, claims: ["scope": .array(scopes.map(JSONValue.string))])
  }

  /// Google's token endpoint (docs/protocol/emulator.md, section 5.1).
  private func grant(
    _ reading: Reading, now: Int64, in state: inout EmulatorState
  ) throws(TokenRefusal) -> ServiceAnswer {
    let (app, client, scopes) = try client(reading, now: now, in: state)
    let text = "ya29." + state.generator.base64URL(120)
    tokens.remember(
      text,
      .init(
        app: app, clientID: client, scopes: scopes,
        expiresAt: now + options.tokenLifetime * 1000), now: now)
    var answer = ServiceAnswer(
      .json(
        200,
        [
          "access_token": .string(text), "expires_in": JSONValue(options.tokenLifetime),
          "token_type": "Bearer",
        ], fields: [("cache-control", "no-store")]))
    answer.credential = Self.credential(client, scopes: scopes)
    return answer
  }

  /// Runs the checks in order.
  private func client(
    _ reading: Reading, now: Int64, in state: EmulatorState
  ) throws(TokenRefusal) -> (app: UInt32?, client: String, scopes: [String]) {
    guard reading.isPost else {
      throw .init(405, "invalid_request", "The token endpoint takes POST only.")
    }
    guard FormFields.isForm(reading.contentType) else {
      throw .init(400, "invalid_request", "The request must be a form.")
    }
    guard let grant = reading.form["grant_type"] else {
      throw .init(400, "invalid_request", "Required parameter is missing: grant_type")
    }
    guard grant == "urn:ietf:params:oauth:grant-type:jwt-bearer" else {
      throw .init(400, "unsupported_grant_type", "Invalid grant_type: \(grant.prefix(100))")
    }
    guard let text = reading.form["assertion"] else {
      throw .init(400, "invalid_request", "Required parameter is missing: assertion")
    }
    guard text.split(separator: ".", omittingEmptySubsequences: false).count == 3 else {
      throw .init(400, "invalid_request", "Assertion is not a JWT")
    }
    // Far longer than any real assertion; anything longer is not decoded.
    guard text.utf8.count <= 16_384, let assertion = try? CompactJWS(text) else {
      throw .init(400, "invalid_grant", "Invalid JWT")
    }
    let (app, client) = try signer(of: assertion)
    try checkClaims(of: assertion, now: now, in: state)
    // Others are not kept: the token and the journal would hold whatever text a client sends.
    let wanted = Set((assertion.claims.string("scope") ?? "").split(separator: " "))
    let scopes = Self.sendScopes.filter { wanted.contains($0[...]) }
    guard !scopes.isEmpty else {
      throw .init(400, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
    }
    return (app, client, scopes)
  }

  /// The app and the client whose key signed; the account is known and enabled. Where any
  /// credential is accepted, an unknown account is good for every app.
  private func signer(
    of assertion: CompactJWS
  ) throws(TokenRefusal) -> (app: UInt32?, client: String) {
    guard assertion.header.string("alg") == "RS256",
      let client = assertion.claims.string("iss")
    else { throw .init(400, "invalid_grant", "Invalid JWT Signature.") }
    let all = apps.all.values.flatMap { app in
      app.accounts.filter { $0.clientEmail == client }.map { (app.number, $0) }
    }
    guard !all.isEmpty else {
      if acceptsAnyCredential {
        guard AnyCredential.isServiceAccount(assertion) else {
          throw .init(400, "invalid_grant", "Invalid JWT: no assertion of a service account")
        }
        return (nil, AnyCredential.name)
      }
      throw .init(400, "invalid_grant", "Invalid grant: account not found")
    }
    let keyID = assertion.header.string("kid")
    let signer = all.first { _, account in
      (keyID == nil || account.privateKeyID == keyID)
        && (try? RSAPublicKey(pem: account.publicKeyPEM)).map(assertion.verifies(with:)) ?? false
    }
    guard let (app, account) = signer else {
      throw .init(400, "invalid_grant", "Invalid JWT Signature.")
    }
    guard !account.isDisabled else {
      throw .init(401, "invalid_client", "The OAuth client was disabled.")
    }
    return (app, client)
  }

  private func checkClaims(
    of assertion: CompactJWS, now: Int64, in state: EmulatorState
  ) throws(TokenRefusal) {
    let claims = assertion.claims
    let audience = claims.string("aud") ?? ""
    let isOwn =
      audience.hasSuffix("/token") && state.addresses.isOwn(String(audience.dropLast(6)), of: .fcm)
    guard isOwn || options.tokenAudiences.contains(audience) else {
      throw .init(400, "invalid_grant", "Invalid JWT: Failed audience check.")
    }
    let seconds = now / 1000
    guard let issued = claims.integer("iat"), let expires = claims.integer("exp"),
      issued <= seconds + options.oauthSkew, expires > seconds,
      case (let lifetime, false) = expires.subtractingReportingOverflow(issued), lifetime <= 3600
    else {
      throw .init(
        400, "invalid_grant",
        "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable "
          + "timeframe. Check your iat and exp values in the JWT claim.")
    }
  }
}
