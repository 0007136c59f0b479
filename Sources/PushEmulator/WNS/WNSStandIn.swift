import HTTP2
import Wire

extension EmulatorListener {
  package static let wns = Self(.wns, port: 9460)
}

/// The strictness of the WNS stand-in (docs/protocol/emulator.md, section 6).
package struct WNSOptions: Sendable {
  /// Whether XML that is not well-formed, or whose root does not match its type, is refused;
  /// otherwise it is accepted and dropped.
  package var strictXML = false
  /// Lifetime of an access token of a Microsoft account in seconds.
  package var liveTokenLifetime: Int64 = 86_400
  /// Lifetime of an access token of Microsoft Entra in seconds.
  package var entraTokenLifetime: Int64 = 3599
  /// Whether `expires_in` is sent as a string, to test lenient parsers.
  package var expiresInAsString = false
  /// Whether a tile keeps five notifications, distinguished by their tags, instead of one.
  package var tileQueue = false
  /// Notifications per second and app; `nil` switches the limit off.
  package var appRate: Double?
  /// Notifications per second and channel; `nil` switches the limit off.
  package var channelRate: Double?

  package init() {}
}

/// WNS and both of its token services (docs/protocol/emulator.md, section 6). The emulator's lock
/// guards its state; see `StandIn`.
final class WNSStandIn: NamedStandIn, @unchecked Sendable {
  static let service = PushService.wns
  static let listeners = [EmulatorListener.wns]
  static let hasTokenName = true
  static let handleMembers = ["channelUri"]

  /// A Windows app as WNS knows it; kept in the state file.
  struct App: ServiceApp {
    let number: UInt32
    /// `ms-app://s-1-15-2-…`; compared without regard to case.
    let packageSID: String
    var secret: String
    var entra: Entra?

    /// The same app's registration at Microsoft Entra.
    struct Entra: Sendable, Codable {
      let tenant: String
      let clientID: String
      var secret: String

      var name: String { "\(tenant)\n\(clientID)".lowercased() }
    }

    var names: [String] { [packageSID.lowercased()] + (entra.map { [$0.name] } ?? []) }
  }

  private enum Scope {
    static let live = "notify.windows.com"
    static let entra = "https://wns.windows.com/.default"
  }

  private let options: WNSOptions
  private let acceptsAnyCredential: Bool
  private let serviceName = ServiceName(.wns)
  private let tokenServiceName = ServiceName(.wns, ofTokens: true)
  var apps = AppTable<App>()
  private var tokens = AccessTokens()
  private var appRates = RateTable<UInt32>()
  private var channelRates = RateTable<Int>()

  init(_ options: EmulatorOptions) {
    self.options = options.wns
    acceptsAnyCredential = options.acceptsAnyCredential
  }

  func revokeTokens(of app: UInt32) { tokens.revoke(app: app) }

  func forgetDevices() {
    appRates = RateTable()
    channelRates = RateTable()
  }

  // MARK: Requests

  func read(_ request: HTTP2ServerRequest) -> WNSRequest { WNSRequest(request) }

  func subject(
    _ request: WNSRequest, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject {
    guard case .channel(let text) = request.target else {
      var subject = ServiceSubject(name: tokenServiceName)
      if !acceptsAnyCredential {
        subject.credential = request.plain.form?["client_id"]
      } else if case .entraToken = request.target {
        subject.path = WNSRequest.entraPath(tenant: "{tenant}")
      }
      return subject
    }
    let token = request.plain.authorization("bearer")
    return ServiceSubject(
      name: serviceName, app: app(ofHandle: text, in: state), handle: text,
      credential: token.flatMap { tokens.token($0, now: state.clock.now)?.clientID })
  }

  func answer(
    _ request: WNSRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    let tenant: String?
    switch request.target {
    case .channel(let text): return answer(request, channel: text, now: now, in: &state)
    case .liveToken: tenant = nil
    case .entraToken(let name): tenant = name
    }
    guard request.plain.method == "POST" else { return .onlyPost }
    do throws(TokenRefusal) {
      return try grant(request.plain, tenant: tenant, now: now, in: &state)
    } catch {
      return error.answer
    }
  }

  /// Issues an access token.
  ///
  /// - Parameter tenant: The tenant of Microsoft Entra; `nil` for a Microsoft account.
  private func grant(
    _ request: PlainRequest, tenant: String?, now: Int64, in state: inout EmulatorState
  ) throws(TokenRefusal) -> ServiceAnswer {
    let wanted = try ClientCredentials(request)
    let app =
      if let tenant {
        apps.named(App.Entra(tenant: tenant, clientID: wanted.clientID, secret: "").name)
      } else {
        apps.named(wanted.clientID.lowercased())
      }
    let isKnown = app.map { (tenant == nil ? $0.secret : $0.entra?.secret) == wanted.secret }
    let isAny =
      acceptsAnyCredential && isKnown != true && !wanted.secret.isEmpty
      && AnyCredential.isClient(wanted.clientID, ofEntra: tenant != nil)
    guard isKnown == true || isAny else {
      // Only Entra replies with 401 to an unknown client.
      throw .invalidClient(tenant == nil ? 400 : 401)
    }
    let scope = tenant == nil ? Scope.live : Scope.entra
    guard wanted.scope == scope else { throw .invalidScope }
    let lifetime = tenant == nil ? options.liveTokenLifetime : options.entraTokenLifetime
    let text = (tenant == nil ? "EgA" : "eyJ0") + state.generator.base64URL(120)
    tokens.remember(
      text,
      .init(
        app: isAny ? nil : app?.number, clientID: isAny ? AnyCredential.name : wanted.clientID,
        scopes: [scope],
        expiresAt: now + lifetime * 1000), now: now)
    let body: JSONValue = [
      "token_type": .string(tenant == nil ? "bearer" : "Bearer"), "access_token": .string(text),
      "expires_in": options.expiresInAsString ? .string(String(lifetime)) : JSONValue(lifetime),
    ]
    return ServiceAnswer(.json(200, body, fields: [("cache-control", "no-store")]))
  }

  // MARK: Notifications

  /// Handles a notification for a channel, from the first check to the store.
  private func answer(
    _ request: WNSRequest, channel text: String, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    var credential = Journal.Credential.none
    if request.plain["authorization"] != nil { credential = .refusedToken }
    let id = state.generator.hex(16).uppercased()
    var reply: WNSReply
    var action: StoreAction?
    do throws(WNSReply) {
      let accepted = try check(request, channel: text, credential: &credential, now: now, in: state)
      (reply, action) = try take(accepted, request, id: id, now: now, in: &state)
    } catch {
      reply = error
    }
    var answer = write(reply, to: request, id: id, in: &state)
    answer.credential = credential
    answer.storeAction = action
    return answer
  }

  private struct Accepted {
    let device: Int
    let app: UInt32
    let fields: WNSRequest.Fields
    let isBadPayload: Bool
  }

  /// Checks the rows of docs/protocol/emulator.md, section 6, in order, up to the rates.
  private func check(
    _ request: WNSRequest, channel text: String, credential: inout Journal.Credential, now: Int64,
    in state: EmulatorState
  ) throws(WNSReply) -> Accepted {
    try checkForm(request)
    guard let bearer = request.plain.authorization("bearer"),
      let token = tokens.token(bearer, now: now)
    else { throw .init(401, "the access token is missing, unknown or expired") }
    let isEntra = token.scopes == [Scope.entra]
    credential = .accepted(keyID: token.clientID, claims: ["entra": .bool(isEntra)])
    guard let found = state.find(.wns, text, now: now) else {
      throw .init(404, "the channel is unknown")
    }
    guard found.isAlive else { throw .init(410, "the channel has expired") }
    let app = state.devices[found.device].app
    guard token.app == nil || token.app == app else {
      throw .init(403, "the access token is of another app than the channel")
    }
    let fields = try request.fields()
    if isEntra, fields.kind == .tile || fields.kind == .badge {
      throw .init(400, "a token of Entra is for toast and raw notifications only")
    }
    let body = request.plain.body
    guard body.count <= 5000 else { throw .init(413, "the payload is over 5000 bytes") }
    guard !body.isEmpty else { throw .init(400, "the payload is empty") }
    let isBad = fields.kind != .raw && rootElement(of: body) != fields.kind.rawValue
    if isBad, options.strictXML {
      throw .init(400, "the payload is no XML, or its root is not \(fields.kind.rawValue)")
    }
    return Accepted(device: found.device, app: app, fields: fields, isBadPayload: isBad)
  }

  /// Checks the method and the encoding of the body.
  private func checkForm(_ request: WNSRequest) throws(WNSReply) {
    switch request.plain.method {
    case "POST": break
    case "DELETE" where request.plain["x-wns-match"] != nil: return
    default: throw .init(405, "the method must be POST")
    }
    if request.plain["expect"] != nil { throw .init(417, "Expect is not supported") }
    guard request.plain["content-length"] != nil, request.plain["transfer-encoding"] == nil else {
      throw .init(411, "Content-Length is required, and no other transfer coding is taken")
    }
  }

  /// Applies the rates of app and channel, then stores the notification.
  private func take(
    _ accepted: Accepted, _ request: WNSRequest, id: String, now: Int64,
    in state: inout EmulatorState
  ) throws(WNSReply) -> (WNSReply, StoreAction?) {
    guard appRates.take(accepted.app, rate: options.appRate, now: now) else {
      var reply = WNSReply(406, "the app sends too much")
      reply.pause = 60
      throw reply
    }
    let device = accepted.device
    var reply = WNSReply(200)
    reply.connection = state.devices.isOnline(device) ? .connected : .disconnected
    guard channelRates.take(device, rate: options.channelRate, now: now) else {
      reply.status = "channelthrottled"
      reply.pause = 60
      return (reply, nil)
    }
    let isSilent = state.devices[device].registration(at: now) != .registered
    if state.devices[device].flags.contains(.disabled) { reply.connection = .connected }
    let notification = notification(accepted, request, id: id, now: now, seq: state.lastRequest)
    let action = state.take(
      notification, for: device, now: now, isBadPayload: accepted.isBadPayload)
    // Until the service has noticed that the app is gone, it replies as usual.
    if action == .discarded, !isSilent { reply.status = "dropped" }
    return (reply, action)
  }

  private func notification(
    _ accepted: Accepted, _ request: WNSRequest, id: String, now: Int64, seq: Int
  ) -> Notification {
    let fields = accepted.fields
    let kind = fields.kind
    let isQueued = kind == .tile && options.tileQueue
    let key = fields.tag.map { "\(kind.rawValue)/\($0)/\(fields.group ?? "")" }
    // Tile and badge expire after three days (docs/protocol/push-services/wns.md, section 5); here
    // all kinds do.
    let until = now + (fields.ttl ?? 3 * 86_400) * 1000
    let shown = [
      ("x-wns-type", "wns/\(kind.rawValue)"), ("x-wns-tag", fields.tag),
      ("x-wns-group", fields.group), ("x-wns-priority", String(fields.priority)),
      ("x-wns-ttl", fields.ttl.map(String.init)),
    ]
    return Notification(
      id: .word(id), receivedAt: now,
      headers: .fields(
        .wns, shown.compactMap { name, value in value.map { .init(name: name, value: $0) } }),
      payload: request.plain.body,
      urgency: fields.priority <= 2 ? .high : fields.priority == 3 ? .normal : .low,
      collapseKey: key, storeKey: isQueued ? key : kind.rawValue,
      storableUntil: fields.isCached ? until : 0,
      shelf: Shelf(number: kind.shelf, limit: isQueued ? 5 : 1, overflow: .replacesOldest),
      requestSeq: seq)
  }

  // MARK: Answers

  /// Writes a reply with the fields that every reply of WNS has.
  /// - Parameter id: The message's id; generated where there is none.
  private func write(
    _ reply: WNSReply, to request: WNSRequest, id: String? = nil, in state: inout EmulatorState
  ) -> ServiceAnswer {
    var fields: [(name: String, value: String)] = [
      ("x-wns-msg-id", id ?? state.generator.hex(16).uppercased()),
      ("x-wns-debug-trace", "EMULATOR-\(state.lastRequest)"),
      ("ms-cv", request.plain["ms-cv"] ?? state.generator.base64URL(16) + ".0"),
      ("x-wns-status", reply.status),
    ]
    if request.wantsStatus, let connection = reply.connection {
      fields.append(("x-wns-deviceconnectionstatus", connection.rawValue))
    }
    if let fault = reply.fault { fields.append(("x-wns-error-description", fault)) }
    if let pause = reply.pause {
      fields.append((reply.code == 200 ? "x-wns-continue-after" : "retry-after", String(pause)))
    }
    if reply.code == 401 {
      fields.append(("www-authenticate", #"Bearer error="invalid_token""#))
    }
    let isPlain = reply.code == 200 && reply.status == "received"
    return ServiceAnswer(
      .init(status: reply.code, fields: HTTP2FieldList(fields)),
      reason: isPlain ? nil : reply.fault ?? reply.status)
  }

  func oversized(
    _ request: WNSRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    guard case .channel = request.target else {
      return ServiceAnswer(.init(status: 413), reason: "too large")
    }
    return write(WNSReply(413, "the request is too large"), to: request, in: &state)
  }

  func response(
    to fault: FaultAction.Reply, _ request: WNSRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    guard case .channel = request.target else { return TokenRefusal(fault).response }
    // WNS uses 406 where other services reply with 429.
    let status = fault.status == 429 ? 406 : fault.status
    var reply = WNSReply(status, status == 200 ? nil : fault.reason ?? "by a fault")
    if status == 200, let word = fault.reason { reply.status = word }
    let answer = write(reply, to: request, in: &state)
    return (answer.response, answer.reason)
  }
}

/// A reply of WNS before it is encoded (docs/protocol/push-services/wns.md, section 4).
struct WNSReply: Error, Sendable {
  enum Connection: String { case connected, disconnected }

  let code: Int
  /// `X-WNS-Status`.
  var status: String
  /// `X-WNS-Error-Description`.
  let fault: String?
  /// `X-WNS-DeviceConnectionStatus`, where the device is known.
  var connection: Connection?
  /// In seconds: `Retry-After`, or `X-WNS-CONTINUE-AFTER` of a channel.
  var pause: Int64?

  /// - Parameter fault: `nil` for a success.
  init(_ code: Int, _ fault: String? = nil) {
    self.code = code
    self.fault = fault
    status = code == 200 ? "received" : "dropped"
  }
}
