import Cryptography
import Foundation
import HTTP2
package import HubCore
package import NotificationHubs
import Wire

/// Manages the broadcast channels of one app, and sends to them
/// (https://developer.apple.com/documentation/usernotifications/sending-channel-management-requests-to-apns,
/// https://developer.apple.com/documentation/usernotifications/sending-broadcast-push-notification-requests-to-apns).
///
/// The token and the connections for sending are shared with pushes to devices.
package final class APNsBroadcastGateway: BroadcastGateway {
  private let bundleID: String
  private let management: APNsRoute
  private let pushes: APNsRoute
  private let token: ProviderToken?
  private let clock: HubClock
  private let random: HubRandom

  /// - Parameter token: `nil` for a certificate credential.
  init(
    bundleID: String, management: APNsRoute, pushes: APNsRoute, token: ProviderToken?,
    clock: HubClock, random: HubRandom
  ) {
    self.bundleID = bundleID
    self.management = management
    self.pushes = pushes
    self.token = token
    self.clock = clock
    self.random = random
  }

  package func close() async {
    await management.connections.closeAll()
    await pushes.connections.closeAll()
  }

  // MARK: Channels

  package func createChannel(
    _ storage: BroadcastChannel.Storage
  ) async throws(BroadcastRefusal) -> BroadcastChannel {
    let policy = storage == .latestMessage ? 1 : 0
    let answer = try await exchange(
      APNsChannelCall(
        method: "POST", path: "/1/apps/\(bundleID)/channels",
        requestID: random.uuid(),
        body: Array(#"{"message-storage-policy":\#(policy),"push-type":"LiveActivity"}"#.utf8)),
      over: management)
    guard let id = answer.channelID, BroadcastChannel.isID(id) else {
      throw Self.unreadable("the reply names no channel")
    }
    return BroadcastChannel(id: id, storage: storage)
  }

  package func channel(_ id: String) async throws(BroadcastRefusal) -> BroadcastChannel {
    let answer = try await exchange(
      APNsChannelCall(
        method: "GET", path: "/1/apps/\(bundleID)/channels", requestID: random.uuid(), channel: id),
      over: management)
    switch StrictJSON.object(answer.body)?["message-storage-policy"]?.scalarText {
    case "0": return BroadcastChannel(id: id, storage: .noMessage)
    case "1": return BroadcastChannel(id: id, storage: .latestMessage)
    default: throw Self.unreadable("the reply says no storage policy that is known")
    }
  }

  package func channels() async throws(BroadcastRefusal) -> [String] {
    let answer = try await exchange(
      APNsChannelCall(
        method: "GET", path: "/1/apps/\(bundleID)/all-channels", requestID: random.uuid()),
      over: management)
    guard case .array(let items)? = StrictJSON.object(answer.body)?["channels"] else {
      throw Self.unreadable("the reply is no list of channels")
    }
    return items.compactMap(\.scalarText)
  }

  package func deleteChannel(_ id: String) async throws(BroadcastRefusal) {
    _ = try await exchange(
      APNsChannelCall(
        method: "DELETE", path: "/1/apps/\(bundleID)/channels", requestID: random.uuid(),
        channel: id),
      over: management)
  }

  package func send(
    _ message: BroadcastMessage, to channel: String
  ) async throws(BroadcastRefusal) -> BroadcastReceipt {
    var call = APNsChannelCall(
      method: "POST", path: "/4/broadcasts/apps/\(bundleID)", requestID: random.uuid(),
      channel: channel, body: message.payload)
    call.fields = [
      HTTP2Field("apns-push-type", APNsPayload.PushType.liveactivity.rawValue),
      HTTP2Field("apns-priority", String(message.priority)),
      HTTP2Field("apns-expiration", String(message.expiration), indexing: .never),
    ]
    let answer = try await exchange(call, over: pushes)
    return BroadcastReceipt(
      requestID: answer.requestID ?? call.requestID, uniqueID: answer.uniqueID)
  }

  private static func unreadable(_ what: String) -> BroadcastRefusal {
    BroadcastRefusal(.unavailable, reason: "APNs' answer cannot be read: \(what)")
  }

  // MARK: Exchange

  /// Maximum number of retries after APNs asked to retry later.
  private static let laterTries = 2
  /// The longest pause that a caller waits for, in seconds.
  private static let longestPause = 5.0

  /// Sends a request until it has a final reply.
  private func exchange(
    _ call: APNsChannelCall, over route: APNsRoute
  ) async throws(BroadcastRefusal) -> APNsChannelCall.Answer {
    var canRefresh = token != nil
    var canReconnect = true
    var later = 0
    var avoided: Int?
    // Terminates: each further round uses up one of the three remedies.
    while true {
      let failure: Failure
      switch await attempt(call, over: route, avoiding: &avoided) {
      case .success(let answer): return answer
      case .failure(let found): failure = found
      }
      let refusal = failure.verdict.broadcastRefusal
      // A request that may have been processed must not be repeated: a second channel would have no
      // owner.
      guard !failure.mayBeDone else { throw refusal }
      switch failure.verdict.rule.retry {
      case .refreshOnce where canRefresh: canRefresh = false
      case .newConnection where canReconnect: canReconnect = false
      case .newConnection, .backoff:
        let pause =
          failure.verdict.retryAfter.map { Double($0) } ?? (0.5 + random.unit())
          * Double(1 << later)
        guard later < Self.laterTries, pause <= Self.longestPause else { throw refusal }
        later += 1
        do { try await clock.sleep(.seconds(pause)) } catch { throw refusal }
      case .refreshOnce, .none, .never, .fix, .pauseCredential: throw refusal
      }
    }
  }

  private struct Failure: Error {
    let verdict: PushVerdict
    /// Whether there was no reply, so that APNs may have processed the request.
    var mayBeDone = false
  }

  private func attempt(
    _ call: APNsChannelCall, over route: APNsRoute, avoiding avoided: inout Int?
  ) async -> Result<APNsChannelCall.Answer, Failure> {
    let lease: HTTP2Pool.Lease
    switch await route.connections.checkOut(avoiding: avoided) {
    case .unavailable(let error):
      return .failure(Failure(verdict: APNsReply.verdict(unavailable: error)))
    case .lease(let found): lease = found
    }
    avoided = lease.id
    let value: ProviderToken.Value?
    do {
      value = try token?.current()
    } catch {
      return .failure(Failure(verdict: PushVerdict(APNsReply.invalidProviderToken)))
    }
    let answers = await lease.connection.send(
      call.wire(to: route.endpoint, token: value?.text))
    let reply = answers.replies[0]
    let isGood = reply.failure == nil && (200...299).contains(reply.status)
    await route.connections.finished(lease, anyAccepted: isGood)
    if isGood { return .success(APNsChannelCall.Answer(answers)) }
    let verdict = answers.apnsVerdict(at: 0, now: clock.now())
    if verdict.endsConnection(token, shown: value) { await route.connections.retire(lease) }
    return .failure(
      Failure(
        verdict: verdict, mayBeDone: reply.failure != nil && reply.mayHaveBeenProcessed))
  }
}

/// One request about channels, as it goes over the wire.
struct APNsChannelCall: Sendable {
  let method: String
  let path: String
  /// The same on every attempt, so that APNs' log shows them as one.
  let requestID: String
  /// `nil` where the request names no channel.
  var channel: String?
  var fields: [HTTP2Field] = []
  var body: [UInt8] = []

  /// Indexes in the list of reply headers.
  private static let headers = [
    "retry-after", "apns-channel-id", "apns-request-id", "apns-unique-id",
  ]

  /// The relevant parts of a successful reply.
  struct Answer: Sendable {
    let body: [UInt8]
    let channelID: String?
    let requestID: String?
    let uniqueID: String?

    init(_ answers: HTTP2ReplyBatch) {
      body = Array(answers.body(of: 0))
      channelID = answers.value(ofHeader: 1, in: 0)
      requestID = answers.value(ofHeader: 2, in: 0)
      uniqueID = answers.value(ofHeader: 3, in: 0)
    }
  }

  /// - Parameter token: The provider token; `nil` for a connection with a client certificate.
  func wire(to endpoint: APNsEndpoint, token: String?) -> HTTP2RequestBatch {
    var wire = HTTP2RequestBatch(
      method: method, authority: endpoint.authority, replyHeaders: Self.headers,
      keepsSuccessBodies: true)
    var all = fields
    all.append(HTTP2Field("apns-request-id", requestID, indexing: .never))
    if let channel { all.append(HTTP2Field("apns-channel-id", channel)) }
    if !body.isEmpty { all.append(HTTP2Field("content-type", "application/json")) }
    if let token { all.append(endpoint.authorization(token)) }
    let set = wire.addFieldSet(all)
    let place = wire.write(path)
    let content = body.isEmpty ? HTTP2ByteRange.empty : wire.write { $0 += body }
    wire.addRequest(path: place, fields: set, body: content)
    return wire
  }
}
