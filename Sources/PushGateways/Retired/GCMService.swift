import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// Google Cloud Messaging and FCM's legacy interface, which have been shut down
/// (docs/protocol/push-services/retired.md, section 3): only an endpoint that is not Google's, such
/// as a stand-in's, is called.
struct GCMService: HTTPPushService {
  static let connections = 64

  struct Message: Sendable {
    let body: [UInt8]
    let isEmpty: Bool
  }

  /// Secret.
  let key: String
  let url: String
  let host: String
  let isPublicOnly: Bool

  private static let limit = 4096

  func message(_ body: PushBody, now: Int64) throws(PushRefusal) -> Message {
    guard body.bytes.count <= Self.limit else {
      throw PushRefusal.tooLarge(body.bytes.count, limit: Self.limit)
    }
    guard case .object(let members)? = StrictJSON.object(body.bytes),
      !members.contains(where: { ["to", "registration_ids"].contains($0.name) })
    else { throw PushRefusal.badFormat("the payload is no JSON object, or names a receiver") }
    return Message(body: body.bytes, isEmpty: members.isEmpty)
  }

  func call(
    _ message: Message, to handle: String, id: PushID, token: String?, now: Int64
  ) throws(PushRefusal) -> HTTPPushCall {
    let member = #""to":"# + JSONValue.string(handle).jsonText
    return HTTPPushCall(
      call: HTTPCall(
        url: url,
        headers: [("Authorization", "key=" + key), ("Content-Type", "application/json")],
        body: StrictJSON.adding(message.isEmpty ? member : "," + member, to: message.body)),
      host: host, isPublicOnly: isPublicOnly)
  }

  var trial: ServiceTrial {
    .none("GCM has ended: there is nobody to ask about its credential.")
  }

  func verdict(_ reply: HTTPReply, to handle: String, now: Int64) -> PushVerdict {
    GCMReply.verdict(reply, now: now)
  }
}

/// Makes GCM gateways: one that calls nobody for Google's own endpoint.
struct GCMGateways: PlatformGateways {
  let supplies: GatewaySupplies

  private static let vendorHosts = [".googleapis.com", "googleapis.com", ".google.com"]

  /// Accepts anything: credentials of a retired service are kept as they are.
  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {}

  func gateway(for credential: PushCredential) throws(CredentialError) -> RetiredOr<GCMService> {
    guard let text = credential.text("GcmEndpoint") else { return .retired }
    guard let address = HTTPAddress(text), address.scheme == "https" else {
      throw CredentialError("GcmEndpoint is no https address. Leave it out; GCM has ended.")
    }
    if address.isHost(in: Self.vendorHosts) { return .retired }
    guard let key = credential.text("GoogleApiKey"),
      key.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { throw CredentialError("GoogleApiKey is missing or no key.") }
    let isPublicOnly = try supplies.hosts.isPublicOnly(
      address.host, port: address.port, vendor: [], property: "GcmEndpoint")
    let service = GCMService(
      key: key, url: text, host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
    return .live(supplies.gateway(service))
  }
}

/// The gateway of a service that has been shut down, and exists only as a stand-in.
enum RetiredOr<Service: HTTPPushService>: ProbingGateway {
  case retired
  case live(HTTPPushGateway<Service>)

  func deliver(_ batch: PushBatch) async -> [PushResult] {
    switch self {
    case .retired: batch.requests.map { _ in RetiredService.refusal.result }
    case .live(let gateway): await gateway.deliver(batch)
    }
  }

  func probe() async -> CredentialProbe {
    switch self {
    case .retired: CredentialProbe(.untried, "The service has ended: there is nobody to ask.")
    case .live(let gateway): await gateway.probe()
    }
  }

  func load() async -> GatewayLoad? {
    switch self {
    case .retired: nil
    case .live(let gateway): await gateway.load()
    }
  }

  func close() async {}
}

/// The complete table of GCM's replies (docs/protocol/push-services/retired.md, section 3).
enum GCMReply {
  static let success = ReplyRule("200", "message_id", .none, .keep, .success)
  static let replaced = ReplyRule(
    "200", "message_id + registration_id", .none, .replace, .success)
  static let overloaded = ReplyRule("501-599", "", .backoff, .keep, .throttled)
  private static let serverError = ReplyRule(
    "200", "InternalServerError", .backoff, .keep, .pnsServerError)

  private static let worded: [ReplyRule] = [
    ReplyRule("200", "MissingRegistration|InvalidRegistration", .never, .remove, .badChannel),
    ReplyRule("200", "NotRegistered", .never, .remove, .expiredChannel),
    ReplyRule("200", "InvalidPackageName", .never, .keep, .wrongChannel),
    ReplyRule("200", "MismatchSenderId", .never, .keep, .invalidCredentials),
    ReplyRule("200", "MessageTooBig", .fix, .keep, .invalidNotificationSize),
    ReplyRule(
      "200", "InvalidDataKey|InvalidTtl|InvalidParameters", .fix, .keep,
      .invalidNotificationFormat),
    ReplyRule(
      "200", "Unavailable|DeviceMessageRateExceeded|TopicsMessageRateExceeded", .backoff, .keep,
      .throttled),
    serverError,
  ]
  private static let byStatus: [ReplyRule] = [
    ReplyRule("400", "", .fix, .keep, .invalidNotificationFormat),
    ReplyRule("401", "", .pauseCredential, .keep, .invalidCredentials),
    ReplyRule("404", "", .pauseCredential, .keep, .pnsInterfaceError),
  ]

  static let all: [ReplyRule] =
    [success, replaced] + worded + byStatus + [overloaded, RetiredService.rule]

  private static let byReason = ReplyRule.byReason(worded)

  static func verdict(_ reply: HTTPReply, now: Int64) -> PushVerdict {
    let retryAfter = reply["Retry-After"].flatMap { RetryAfter.seconds($0, now: now) }
    let reason = "status \(reply.status)"
    guard reply.status == 200 else {
      let rule =
        switch reply.status {
        case 500: serverError
        case 501...599: overloaded
        default: byStatus.first { $0.status == "\(reply.status)" } ?? .notUnderstood
        }
      return PushVerdict(rule, status: reply.status, reason: reason, retryAfter: retryAfter)
    }
    guard case .array(let results)? = StrictJSON.object(reply.body)?["results"],
      let first = results.first
    else { return PushVerdict(.notUnderstood, status: 200, reason: "the reply has no result") }
    if let word = first["error"]?.scalarText {
      return PushVerdict(
        byReason[word] ?? ReplyRule("200", "", .never, .keep, .unknownError), status: 200,
        reason: PushVerdict.shown(word), retryAfter: retryAfter)
    }
    guard first["message_id"] != nil else {
      return PushVerdict(.notUnderstood, status: 200, reason: "the reply has no result")
    }
    guard case .string(let id)? = first["registration_id"], PushVerdict.isHandle(id)
    else { return PushVerdict(success, status: 200) }
    return PushVerdict(replaced, status: 200, newHandle: id)
  }
}

/// The reply for services that have been shut down, which are not called
/// (docs/protocol/push-services/retired.md, section 1).
enum RetiredService {
  static let rule = ReplyRule("local", "retired", .never, .keep, .pnsInterfaceError)
  static let reason = "retired service"
  static let refusal = PushRefusal(.pnsInterfaceError, reason)
}
