import Cryptography
import HTTP2
import Wire

/// APNs: pushes and broadcasts, and the management of channels, in production and sandbox
/// (docs/protocol/emulator.md, section 4). The emulator's lock guards its state; see `StandIn`.
final class APNsStandIn: StandIn, @unchecked Sendable {
  static let service = PushService.apns
  static let listeners: [EmulatorListener] = [
    .apnsProduction, .apnsSandbox, .apnsChannelsProduction, .apnsChannelsSandbox,
  ]

  let options: APNsOptions
  let acceptsAnyCredential: Bool
  var accounts = APNsAccounts()
  var channels = APNsChannels()
  /// By slot of the state's connection table.
  private var connections: [APNsConnection?] = []
  private let serviceName = ServiceName(.apns)
  /// All of an app's messages to a device wait on one shelf; if its limit is one, a newer message
  /// replaces it.
  private let shelf: Shelf

  init(_ options: EmulatorOptions) {
    self.options = options.apns
    acceptsAnyCredential = options.acceptsAnyCredential
    let limit = max(1, options.apns.storedPerApp)
    shelf = Shelf(number: 0, limit: limit, overflow: limit == 1 ? .replacesOldest : .dropsOldest)
  }

  var idleTimeout: Int64? { options.idleTimeout }
  var holdWindow: Int64? { options.groupWindow }

  // MARK: Connections

  func configure(
    _ configuration: inout HTTP2ServerConfiguration, authority: Certificate,
    options: EmulatorOptions
  ) {
    configuration.clientCertificates = .optional
    configuration.clientAnchorsPEM = Array((authority.pem + options.clientAuthoritiesPEM).utf8)
    // Apple accepts HTTP/2 from clients that do not negotiate it, and several well-known ones do
    // not (aioapns; pushy, whose issue 808 is about just that).
    configuration.requiresALPN = false
    // Until a provider token has been accepted (docs/protocol/push-services/apns.md, section 5).
    configuration.maxConcurrentStreams = 1
  }

  func connectionOpened(
    _ slot: Int, at listener: EmulatorListener, certificate: HTTP2PeerCertificate?,
    in state: inout EmulatorState
  ) -> Int? {
    let shown = certificate.map { ClientCertificate(der: $0.der, isVerified: $0.isVerified) }
    while connections.count <= slot { connections.append(nil) }
    connections[slot] = APNsConnection(at: listener, certificate: shown)
    return shown == nil ? nil : options.maxStreams
  }

  func connectionClosed(_ slot: Int, in state: inout EmulatorState) { connections[slot] = nil }

  func identity(ofConnection slot: Int, in state: EmulatorState) -> (
    JSONValue, environment: String?
  )? {
    guard let connection = connection(slot) else { return nil }
    var identity: JSONValue?
    if let certificate = connection.certificate {
      identity = ["certificate": .string(certificate.sha256)]
    } else if let token = connection.current {
      identity = ["teamId": .string(token.teamID), "keyId": .string(token.kid)]
    }
    return (identity ?? .null, connection.environment.rawValue)
  }

  private func connection(_ slot: Int) -> APNsConnection? {
    slot < connections.count ? connections[slot] : nil
  }

  // MARK: Requests

  func read(_ request: HTTP2ServerRequest) -> APNsRequest { APNsRequest(request) }

  func subject(
    _ request: APNsRequest, slot: Int, forFaults: Bool, in state: EmulatorState
  ) -> ServiceSubject {
    var subject = ServiceSubject(name: serviceName)
    if request.isOfChannels {
      subject.handle = request.channelID.map { String(decoding: $0, as: UTF8.self) }
    }
    // The journal finds a device by the path, and the list of connections uses `identity`.
    guard forFaults, let connection = connection(slot) else { return subject }
    subject.credential = connection.certificate?.sha256 ?? connection.current?.kid
    if case .token(let token) = request.path {
      subject.handle = token.text
      subject.app = state.handles.device(token, in: connection.environment).map {
        state.devices[$0].app
      }
    } else if let bundleID = request.bundleID {
      let name = String(decoding: bundleID, as: UTF8.self)
      subject.app = accounts.apps.values.first { $0.bundleID == name }?.number
    }
    return subject
  }

  func answer(
    _ request: APNsRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer {
    guard let connection = connection(slot) else {
      let id = request.id.value ?? state.generator.uuid()
      return Self.refusal(.init(.shutdown), id, ofChannels: false)
    }
    let isOfChannels = request.isOfChannels || connection.managesChannels
    let id = (isOfChannels ? request.requestID : request.id).value ?? state.generator.uuid()
    let wasOpen = connection.isOpen
    var credential = Journal.Credential.none
    var answer: ServiceAnswer
    do throws(APNsRefusal) {
      answer =
        isOfChannels
        ? try answerChannels(
          request, id: id, on: connection, now: now, credential: &credential, in: &state)
        : try push(request, id: id, on: connection, now: now, credential: &credential, in: &state)
    } catch {
      answer = Self.refusal(error, id, ofChannels: isOfChannels)
      if error.reason == .badDeviceToken, options.errorPenalty, connection.countBadToken(now: now) {
        // APNs' treatment of a sender of very many bad tokens (docs/protocol/emulator.md, section
        // 4.1).
        answer.streams = max(1, options.maxStreams / 10)
        answer.dismissal = answer.reason
      }
    }
    answer.credential = credential
    // The connection's first token was accepted.
    if !wasOpen, connection.isOpen, answer.streams == nil { answer.streams = options.maxStreams }
    return answer
  }

  /// The checks themselves detect an oversized request, because their order matters here too.
  func oversized(
    _ request: APNsRequest, slot: Int, now: Int64, in state: inout EmulatorState
  ) -> ServiceAnswer { answer(request, slot: slot, now: now, in: &state) }

  private func push(
    _ request: APNsRequest, id: APNsMessageID, on connection: APNsConnection, now: Int64,
    credential: inout Journal.Credential, in state: inout EmulatorState
  ) throws(APNsRefusal) -> ServiceAnswer {
    try checkForm(request)
    let identity = try identify(request, on: connection, now: now, credential: &credential)
    let target = try target(of: request, identity, on: connection)
    try checkFields(request)
    let device = try device(for: request, target, in: connection.environment, now: now, state)
    try checkSize(request, limit: target.kind.payloadLimit)
    if let rate = options.perTokenRate,
      !state.devices.withLog(
        of: device, { $0.rate.take(rate: rate, burst: max(1, rate), now: now) })
    {
      throw .init(.tooManyRequests)
    }
    let isObject = try checkPayload(request)
    let uniqueID = connection.environment == .sandbox ? state.generator.uuid() : nil
    let notification = notification(request, target, id: id, now: now, seq: state.lastRequest)
    var answer = Self.success(200, id, uniqueID: uniqueID)
    answer.storeAction = state.take(
      notification, for: device, now: now, isBadPayload: !isObject)
    return answer
  }

  private func notification(
    _ request: APNsRequest, _ target: TopicTarget, id: APNsMessageID, now: Int64, seq: Int
  ) -> Notification {
    let place = APNsKind.allCases.firstIndex(of: target.kind) ?? 0
    let expiration = request.expiration.value
    let storableUntil =
      expiration.map { min($0, EmulatorClock.latest / 1000) * 1000 }
      ?? now + options.defaultStorage * 1000
    let collapseID = request.collapseID.map { String(decoding: $0, as: UTF8.self) }
    let headers = APNsHeaders(
      topic: accounts.apps[target.app]?.topics[place] ?? "", pushType: request.pushType.value,
      priority: request.priority.value, expiration: expiration, collapseID: collapseID)
    return Notification(
      id: .apns(id), receivedAt: now, headers: .apns(headers), payload: request.body,
      urgency: headers.urgency, collapseKey: collapseID,
      storableUntil: storableUntil > now ? storableUntil : 0, shelf: shelf, requestSeq: seq)
  }

  // MARK: Answers

  /// Apple's reply to an accepted request (docs/protocol/push-services/apns.md, section 4;
  /// docs/protocol/emulator.md, section 4.2).
  ///
  /// - Parameter uniqueID: In the sandbox: the key to Apple's delivery log.
  static func success(
    _ status: Int, _ id: APNsMessageID, ofChannels: Bool = false, uniqueID: APNsMessageID? = nil,
    channelID: String? = nil, body: JSONValue? = nil
  ) -> ServiceAnswer {
    var fields = fields(id, ofChannels: ofChannels)
    if let uniqueID { fields.append(name: "apns-unique-id".utf8, value: uniqueID.bytes) }
    if let channelID { fields.append("apns-channel-id", channelID) }
    if body != nil { fields.append("content-type", "application/json") }
    return ServiceAnswer(.init(status: status, fields: fields, body: body?.jsonBytes ?? []))
  }

  private static func refusal(
    _ refusal: APNsRefusal, _ id: APNsMessageID, ofChannels: Bool
  ) -> ServiceAnswer {
    var fields = fields(id, ofChannels: ofChannels)
    fields.append("content-type", "application/json")
    let reason = refusal.reason.rawValue
    return ServiceAnswer(
      .init(
        status: refusal.reason.status, fields: fields,
        body: body(reason, timestamp: refusal.timestamp)), reason: reason)
  }

  private static func fields(_ id: APNsMessageID, ofChannels: Bool) -> HTTP2FieldList {
    var fields = HTTP2FieldList()
    fields.append(name: (ofChannels ? "apns-request-id" : "apns-id").utf8, value: id.bytes)
    return fields
  }

  private static func body(_ reason: String, timestamp: Int64?) -> [UInt8] {
    let body: JSONValue = ["reason": .string(reason)]
    return (timestamp.map { body + ["timestamp": JSONValue($0)] } ?? body).jsonBytes
  }

  func fields(
    ofGivenBody request: APNsRequest, in state: inout EmulatorState
  ) -> [(name: String, value: String)] {
    let id = (request.isOfChannels ? request.requestID : request.id).value
    return [
      (
        request.isOfChannels ? "apns-request-id" : "apns-id",
        (id ?? state.generator.uuid()).text
      ), ("content-type", "application/json"),
    ]
  }

  func response(
    to fault: FaultAction.Reply, _ request: APNsRequest, in state: inout EmulatorState
  ) -> (HTTP2ServerResponse, reason: String?) {
    let id =
      (request.isOfChannels ? request.requestID : request.id).value ?? state.generator.uuid()
    var response = HTTP2ServerResponse(
      status: fault.status, fields: Self.fields(id, ofChannels: request.isOfChannels))
    let reason = fault.reason ?? APNsReason.usual(for: fault.status)?.rawValue
    if let reason {
      response.fields.append("content-type", "application/json")
      response.body = Self.body(reason, timestamp: fault.status == 410 ? state.clock.now : nil)
    }
    return (response, reason)
  }
}
