import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// Google Cloud Messaging and FCM's legacy interface, which have ended (spec
/// `pns/mpns-and-gcm-legacy.md` section 3): only an endpoint that is not Google's, a stand-in's, is
/// called.
struct GCMService: HTTPPushService {
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
    var receiver = JSONWriter()
    receiver.value(.string(handle))
    let member = #""to":"# + String(decoding: receiver.bytes, as: UTF8.self)
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
  let configuration: PushGatewaysConfiguration
  let sessions: GatewaySessions
  let clock: HubClock

  private static let vendorHosts = [".googleapis.com", "googleapis.com", ".google.com"]

  func gateway(for credential: PushCredential) throws(CredentialError) -> RetiredOr<GCMService> {
    let text = credential["GcmEndpoint"]?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    guard !text.isEmpty else { return .retired }
    guard let address = HTTPAddress(text), address.scheme == "https" else {
      throw CredentialError("GcmEndpoint is no https address. Leave it out; GCM has ended.")
    }
    if address.isHost(in: Self.vendorHosts) { return .retired }
    let key = credential["GoogleApiKey"]?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    guard !key.isEmpty, key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw CredentialError("GoogleApiKey is missing or no key.")
    }
    let isPublicOnly = try ServiceHosts(configuration).isPublicOnly(
      address.host, vendor: [], property: "GcmEndpoint")
    let service = GCMService(
      key: key, url: text, host: "\(address.host):\(address.port)", isPublicOnly: isPublicOnly)
    return .live(
      HTTPPushGateway(
        service, sessions: sessions, connections: configuration.wns.maxConnections, clock: clock))
  }
}

/// The gateway of a service that has ended, and lives on only at a stand-in.
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

  func close() async {}
}
