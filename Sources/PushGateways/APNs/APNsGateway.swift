import Cryptography
import Foundation
import HTTP2
package import HubCore
package import NotificationHubs
import Synchronization

/// Delivers to APNs under one credential.
///
/// Immediate remedies are applied here, once for each push: another connection for a push that was
/// not processed, a fresh provider token for one that was refused. Everything slower is advice to
/// the caller, who schedules retries.
///
/// A device token that one environment does not know is tried in the other, once, if the credential
/// serves both: devices with development builds are in the same hub as all others.
package final class APNsGateway: PushGateway {
  private let topic: String
  private let own: APNsRoute
  /// `nil` when there is no other environment, or the credential does not serve it.
  private let other: APNsRoute?
  /// Whether APNs said that the key belongs to one environment alone.
  private let isBound = Atomic<Bool>(false)
  private let token: ProviderToken?
  private let clock: HubClock

  /// - Parameters:
  ///   - own: The connections of the credential's endpoint and key, or certificate.
  ///   - other: Those of its other endpoint.
  ///   - token: `nil` for a certificate credential.
  init(
    _ credential: APNsCredential, own: HTTP2Pool, other: HTTP2Pool?, token: ProviderToken?,
    clock: HubClock
  ) {
    topic = credential.topic
    self.own = APNsRoute(endpoint: credential.endpoint, connections: own)
    self.other = credential.otherEndpoint.flatMap { endpoint in
      other.map { APNsRoute(endpoint: endpoint, connections: $0) }
    }
    self.token = token
    self.clock = clock
  }

  package func load() async -> GatewayLoad? {
    var load = await connections.load
    if let other {
      let there = await other.connections.load
      // A route that was never needed adds nothing.
      if there.connections > 0 { load = load + there }
    }
    return load
  }

  /// The connections to the credential's own environment.
  var connections: HTTP2Pool { own.connections }

  package func close() async {
    await own.connections.closeAll()
    await other?.connections.closeAll()
  }

  package var pool: GatewayPool? { own.connections.shared }

  package func deliver(_ batch: PushBatch) async -> [PushResult] {
    var outbox = APNsOutbox(batch, topic: topic)
    guard let other, !isBound.load(ordering: .relaxed) else {
      await deliver(outbox.sendable, of: &outbox, over: own)
      return outbox.results
    }
    let (here, there) = outbox.sendableByEnvironment
    await deliver(here, of: &outbox, over: own)
    await deliver(there, of: &outbox, over: other)
    let strays = outbox.strays
    guard !strays.isEmpty else { return outbox.results }
    let first = outbox.results
    await deliver(strays.filter { outbox.isOwn($0) }, of: &outbox, over: other)
    await deliver(strays.filter { !outbox.isOwn($0) }, of: &outbox, over: own)
    for index in strays where outbox.settleStray(index, first: first[index]) {
      isBound.store(true, ordering: .relaxed)
    }
    return outbox.results
  }

  /// Delivers in the credential's own environment, and tries no other.
  func deliverHere(_ batch: PushBatch) async -> [PushResult] {
    var outbox = APNsOutbox(batch, topic: topic)
    await deliver(outbox.sendable, of: &outbox, over: own)
    return outbox.results
  }

  private func deliver(_ indices: [Int], of outbox: inout APNsOutbox, over route: APNsRoute) async {
    var queue = indices
    var allowance = Allowance(refresh: token != nil)
    var avoided: Int?
    // Terminates: each round that leaves something to be sent uses up a part of the allowance.
    while !queue.isEmpty {
      switch await route.connections.checkOut(avoiding: avoided) {
      case .unavailable(let error):
        for index in queue { outbox.record(APNsReply.verdict(unavailable: error), for: index) }
        return
      case .lease(let lease):
        avoided = lease.id
        queue = await send(
          queue, of: &outbox, by: Way(route: route, lease: lease), allowance: &allowance)
      }
    }
  }

  /// A route and its connection in use.
  private struct Way {
    let route: APNsRoute
    let lease: HTTP2Pool.Lease
  }

  /// The immediate remedies that remain for the pushes of a batch: each may be used once.
  private struct Allowance {
    var newConnection = true
    /// Always false for a certificate, which cannot be refreshed.
    var refresh: Bool

    func covers(_ verdict: PushVerdict) -> Bool {
      switch verdict.rule.retry {
      case .newConnection: newConnection
      case .refreshOnce: refresh
      case .none, .never, .fix, .backoff, .pauseCredential: false
      }
    }

    mutating func use(for verdict: PushVerdict) {
      if verdict.rule.retry == .refreshOnce { refresh = false } else { newConnection = false }
    }
  }

  /// Sends the queued pushes and records the replies.
  /// - Returns: The pushes to send again over another connection.
  private func send(
    _ queue: [Int], of outbox: inout APNsOutbox, by way: Way,
    allowance: inout Allowance
  ) async -> [Int] {
    let value: ProviderToken.Value?
    do {
      value = try token?.current()
    } catch {
      for index in queue { outbox.record(PushVerdict(APNsReply.invalidProviderToken), for: index) }
      return []
    }
    var rest = queue[...]
    if !way.lease.isProven {
      // One push goes ahead. A connection that has accepted none has one stream anyway, and the
      // effect of a bad credential or a dead connection need not be tried with a thousand.
      let refused = await exchange(rest.prefix(1), of: &outbox, by: way, token: value)
      rest = rest.dropFirst()
      if let (index, verdict) = refused.first {
        if allowance.covers(verdict) {
          allowance.use(for: verdict)
          return queue
        }
        outbox.record(verdict, for: index)
        if verdict.rule == APNsReply.tooManyTokenUpdates, allowance.newConnection {
          // A fault of this connection alone; another may continue with the same token.
          allowance.use(for: verdict)
          return Array(rest)
        }
        // A push that had a reply says nothing about the others, even if the connection ended after it.
        let isLost = verdict.status == 0 && way.lease.connection.status.state == .closed
        if verdict.concernsConnection || isLost {
          for other in rest { outbox.record(verdict, for: other) }
          return []
        }
      }
    }
    guard !rest.isEmpty else { return [] }
    let refused = await exchange(rest, of: &outbox, by: way, token: value)
    let before = allowance
    var again: [Int] = []
    for (index, verdict) in refused {
      if before.covers(verdict) {
        again.append(index)
        allowance.use(for: verdict)
      } else {
        outbox.record(verdict, for: index)
      }
    }
    return again
  }

  /// Sends one batch, records the accepted pushes, and applies the replies to connection and token.
  /// - Returns: The pushes that were not accepted.
  private func exchange(
    _ indices: ArraySlice<Int>, of outbox: inout APNsOutbox, by way: Way,
    token value: ProviderToken.Value?
  ) async -> [(Int, PushVerdict)] {
    let wire = outbox.requests(indices, to: way.route.endpoint, token: value?.text)
    let answers = await way.lease.connection.send(wire)
    var refused: [(Int, PushVerdict)] = []
    for (position, index) in indices.enumerated() {
      let reply = answers.replies[position]
      if reply.failure == nil, reply.status == 200 {
        outbox.accept(index)
      } else {
        refused.append((index, answers.apnsVerdict(at: position, now: clock.now())))
      }
    }
    await way.route.connections.finished(way.lease, anyAccepted: refused.count < indices.count)
    var isSpent = false
    for (_, verdict) in refused where verdict.endsConnection(token, shown: value) { isSpent = true }
    if isSpent { await way.route.connections.retire(way.lease) }
    return refused
  }
}

extension APNsGateway: ProbingGateway {
  /// Sends a background push to a token of zeros, which APNs gives to no device: APNs checks the
  /// credential before the device token.
  package func probe() async -> CredentialProbe {
    let body = PushBody(
      bytes: Array(#"{"aps":{"content-available":1}}"#.utf8),
      headers: ["apns-push-type": "background", "apns-priority": "5"], expiry: 0)
    let batch = PushBatch(to: String(repeating: "0", count: 64), body)
    let results = await deliverHere(batch)
    return Self.reading.probe(results.first ?? PushResult(outcome: .unknownError))
  }

  private static let reading = ProbeReading(
    service: "Apple",
    proof: "all that it objects to is the device token that was tried, which no device has",
    open: "Whether the app is the right one shows with the first push to a device.",
    advice: [
      "InvalidProviderToken":
        "The key id and the team id must be those of this very .p8 file, and the key must not be "
        + "revoked: see Certificates, Identifiers & Profiles, Keys, and Membership for the team.",
      "ExpiredProviderToken": "Check this machine's clock: Apple takes tokens of the last hour.",
      "BadEnvironmentKeyIdInToken": environment,
      "BadEnvironmentKeyInToken": environment,
      "BadCertificateEnvironment": environment,
      "BadCertificate": "Make a new Apple Push Notification certificate for the app.",
      "tls-certificate-rejected":
        "The certificate is revoked, expired or not one of Apple's for pushes: make a new one.",
      "TopicDisallowed": topic,
      "BadTopic": topic,
      "MissingTopic": topic,
      "DeviceTokenNotForTopic": topic,
      "UnrelatedKeyIdInToken": "The key is not for this team's apps: check key id and team id.",
    ],
    otherAdvice: "Check key id, team id, bundle id and environment in Apple's developer portal.")

  private static let environment =
    "It is for the other environment: give --endpoint sandbox for builds from Xcode, --endpoint "
    + "production for the App Store and TestFlight; or a key that serves both."
  private static let topic =
    "The bundle id must be that of the app, as Identifiers in Apple's developer portal show it."
}
