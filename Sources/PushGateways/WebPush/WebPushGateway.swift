import Cryptography
import Foundation
import HTTP2
package import HubCore
package import NotificationHubs
import Synchronization

/// Delivers to the push services of browsers, each message encrypted for its subscription
/// (RFC 8291), under one application server key.
package final class WebPushGateway: PushGateway {
  private let origins: WebPushOrigins
  let tokens: VAPIDTokens
  private let clock: HubClock
  private let random: HubRandom
  /// The time at which each origin has last accepted a push with this key.
  private let successes = Mutex<[Origin: Date]>([:])

  /// Time for which a success vouches for the key (docs/protocol/push-services/web-push.md, section
  /// 5).
  private static let trust: TimeInterval = 3600

  init(origins: WebPushOrigins, tokens: VAPIDTokens, clock: HubClock, random: HubRandom) {
    self.origins = origins
    self.tokens = tokens
    self.clock = clock
    self.random = random
  }

  package func load() async -> GatewayLoad? { await origins.load }

  package func close() async { await origins.closeAll() }

  package func deliver(_ batch: PushBatch) async -> [PushResult] {
    let now = Int64(clock.now().timeIntervalSince1970)
    let outbox = WebPushOutbox(batch, hosts: origins.hosts, now: now)
    var results = outbox.results
    guard !outbox.letters.isEmpty else { return results }
    let sealed = await WebPushSealed.seal(
      outbox.letters, bodies: batch.bodies, random: random)
    await withTaskGroup(of: [(Int, PushResult)].self) { group in
      for delivery in outbox.deliveries {
        group.addTask { await self.send(delivery, of: outbox, sealed) }
      }
      for await answered in group {
        for (index, result) in answered { results[index] = result }
      }
    }
    return results
  }

  /// - Returns: The result of each push, with its place in the batch.
  private func send(
    _ delivery: WebPushOutbox.Delivery, of outbox: WebPushOutbox, _ sealed: WebPushSealed
  ) async -> [(Int, PushResult)] {
    var results: [(Int, PushResult)] = []
    var sendable: [Int] = []
    for index in delivery.letters {
      switch sealed.letters[index] {
      case .sealed: sendable.append(index)
      case .badKey:
        results.append((outbox.request(index), PushVerdict(WebPushReply.badSubscription).result))
      case .failed: results.append((outbox.request(index), Self.failure))
      }
    }
    let authorization: String
    do {
      authorization = try tokens.authorization(for: delivery.origin)
    } catch {
      return results + sendable.map { (outbox.request($0), Self.failure) }
    }
    let link = origins.link(to: delivery.origin, delivery.admission)
    let answers = await link.send(sendable) { indices in
      outbox.requests(
        indices, sealed: sealed, origin: delivery.origin, authorization: authorization)
    }
    let hadSuccess = note(answers, from: delivery.origin)
    let now = Int64(clock.now().timeIntervalSince1970)
    let speaksForAll = origins.hosts.speaksForAll(delivery.origin)
    for (index, answer) in zip(sendable, answers) {
      let isPlainSuccess = answer.trouble == nil && answer.status == 201
      var result =
        isPlainSuccess
        ? .success : WebPushReply.verdict(answer, hadSuccess: hadSuccess, now: now).result
      if !speaksForAll { (result.retryAfter, result.concernsOthers) = (nil, false) }
      results.append((outbox.request(index), result))
    }
    return results
  }

  /// The result of an OpenSSL failure that should not occur; the subscription is not to blame.
  private static let failure = PushResult(
    outcome: .unknownError, retry: .backoff, reason: "the message could not be encrypted or signed")

  /// - Returns: Whether the origin has recently accepted a push with this key.
  private func note(_ answers: [LinkReply], from origin: Origin) -> Bool {
    let now = clock.now()
    let isAccepted = answers.contains { $0.trouble == nil && (200...299).contains($0.status) }
    return successes.withLock { successes in
      if isAccepted {
        if successes.count >= 1024 { successes = [:] }
        successes[origin] = now
      }
      return successes[origin].map { now.timeIntervalSince($0) < Self.trust } ?? false
    }
  }
}

extension WebPushGateway: ProbingGateway {
  /// Only checks that the pair can sign. The pair was validated when the credential was read, and
  /// every push service accepts any pair: only a subscription names the service, and only that
  /// service knows whether the page subscribed with this pair.
  package func probe() async -> CredentialProbe {
    do {
      _ = try tokens.authorization(for: Origin(host: "push.example.com", port: 443))
    } catch {
      return CredentialProbe(.refused, "The pair cannot sign: \(error.message)")
    }
    return CredentialProbe(
      .untried,
      """
      The pair fits together and signs. No push service of a browser can be asked about it without a \
      subscription: pages must subscribe with this public key, and the first push will tell.
      """)
  }
}

/// Makes Web Push gateways, which share the connections to each origin: a push service accepts
/// messages of any application server on one connection.
package final class WebPushGateways: PlatformGateways {
  private let origins: WebPushOrigins
  private let clock: HubClock
  private let random: HubRandom

  package init(supplies: GatewaySupplies) {
    origins = WebPushOrigins(supplies: supplies)
    clock = supplies.clock
    random = supplies.random
  }

  static func check(_ credential: PushCredential, at now: Date) throws(CredentialError) {
    _ = try WebPushCredential(credential)
  }

  /// - Throws: ``CredentialError`` when the credential cannot work.
  package func gateway(
    for credential: PushCredential
  ) throws(CredentialError) -> WebPushGateway {
    let checked = try WebPushCredential(credential)
    return WebPushGateway(
      origins: origins, tokens: VAPIDTokens(checked, clock: clock), clock: clock,
      random: random)
  }
}

/// The hosts that subscriptions may name in addition to those that the operator names.
package enum WebPushReach: String, CaseIterable, Sendable {
  /// The push services of the browsers' vendors.
  case vendors
  /// Any host, on port 443 and at public addresses: push servers that people choose or run
  /// themselves, as with UnifiedPush.
  case anyPublic = "public"
}

/// Settings of connections to the push services of browsers, for all credentials.
package struct WebPushConfiguration: Sendable {
  /// Settings per origin: one connection suffices for a browser's service.
  package var connections: HTTP2PoolConfiguration
  /// Maximum number of origins with connections; beyond it, the least recently used are released.
  package var maxOrigins = 64
  package var reach = WebPushReach.vendors

  package init() {
    connections = HTTP2PoolConfiguration(idleTimeout: .seconds(5 * 60))
    connections.maxConnections = 2
  }
}
