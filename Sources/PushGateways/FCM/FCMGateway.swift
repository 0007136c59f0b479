import Foundation
import HTTP2
package import HubCore
package import NotificationHubs
import Synchronization

/// Delivers to FCM under one service account.
///
/// The immediate remedy is applied here: a fresh access token, once, for pushes whose token was
/// refused. Everything slower is advice to the caller, who schedules retries.
package final class FCMGateway: PushGateway {
  private let path: String
  private let link: OriginLink
  private let tokens: AccessTokenSource
  private let pace: SendPace?
  /// Closed with their last user; they fetch access tokens and carry pushes without HTTP/2.
  private let sessions: GatewaySessions
  private let clock: HubClock
  /// The token with which FCM has last accepted a push.
  private let proven = Mutex<AccessToken?>(nil)

  init(
    project: String, link: OriginLink, tokens: AccessTokenSource, pace: SendPace?,
    sessions: GatewaySessions, clock: HubClock
  ) {
    path = "/v1/projects/\(project)/messages:send"
    self.link = link
    self.tokens = tokens
    self.pace = pace
    self.sessions = sessions
    self.clock = clock
  }

  package var pool: GatewayPool? { link.shared }

  package func load() async -> GatewayLoad? { await link.load }

  package func close() async { await link.close() }

  package func deliver(_ batch: PushBatch) async -> [PushResult] {
    var outbox = PushOutbox(fcm: batch)
    var queue = outbox.sendable
    guard !queue.isEmpty else { return outbox.results }
    await pace?.admit(queue.count)
    var mayRefresh = true
    // Terminates: only a refresh leaves something to be sent, and there is one.
    while !queue.isEmpty {
      let token: AccessToken
      do {
        token = try await tokens.current()
      } catch {
        for index in queue { outbox.results[index] = error.result }
        break
      }
      queue = await send(queue, of: &outbox, with: token, mayRefresh: mayRefresh)
      if !queue.isEmpty {
        tokens.invalidate(token)
        mayRefresh = false
      }
    }
    return outbox.results
  }

  /// Sends the queued pushes and records the replies.
  /// - Returns: The pushes to send again with a fresh token.
  private func send(
    _ queue: [Int], of outbox: inout PushOutbox<FCMBody>, with token: AccessToken,
    mayRefresh: Bool
  ) async -> [Int] {
    var rest = queue[...]
    if proven.withLock({ $0 != token }), rest.count > 1 {
      // One push goes ahead: the reply to a bad credential need not be received a thousand times.
      let verdict = await exchange(rest.prefix(1), of: outbox, with: token)[0]
      if verdict.rule.retry == .refreshOnce, mayRefresh { return queue }
      if verdict.concernsCredential || verdict.status == 0 {
        for index in queue { outbox.results[index] = verdict.result }
        return []
      }
      outbox.results[queue[0]] = verdict.result
      rest = rest.dropFirst()
    }
    var again: [Int] = []
    for (index, verdict) in zip(rest, await exchange(rest, of: outbox, with: token)) {
      if verdict.rule == FCMReply.success {
        outbox.results[index] = .success
      } else if verdict.rule.retry == .refreshOnce, mayRefresh {
        again.append(index)
      } else {
        outbox.results[index] = verdict.result
      }
    }
    return again
  }

  private func exchange(
    _ indices: ArraySlice<Int>, of outbox: PushOutbox<FCMBody>, with token: AccessToken
  ) async -> [PushVerdict] {
    let answers = await link.send(Array(indices)) { indices in
      outbox.requests(indices, to: link.origin, path: path, token: token)
    }
    let now = Int64(clock.now().timeIntervalSince1970)
    let verdicts = answers.map { FCMReply.verdict($0, now: now) }
    if verdicts.contains(where: { $0.status != 0 && !$0.concernsCredential }) {
      proven.withLock { $0 = token }
    }
    return verdicts
  }
}

extension FCMGateway: ProbingGateway {
  /// Gets an access token, and has FCM validate a message without sending it.
  package func probe() async -> CredentialProbe {
    let body = PushBody(
      bytes: Array(#"{"validate_only":true,"message":{"data":{"probe":"1"}}}"#.utf8))
    let results = await deliver(PushBatch(to: "belfry-probe", body))
    return Self.reading.probe(results.first ?? PushResult(outcome: .unknownError))
  }

  private static let reading = ProbeReading(
    service: "Google",
    proof:
      "its token service knows the key, and FCM the project; the message was for no device and only "
      + "to be checked",
    advice: [
      "invalid_grant":
        "The key is deleted, or the account, or this machine's clock is wrong: make a new key in the "
        + "Firebase console, under project settings, service accounts.",
      "invalid_client": account,
      "unauthorized_client": account,
      "PERMISSION_DENIED":
        "Turn on the Firebase Cloud Messaging API (V1) for the project, and give the service account "
        + "the role Firebase Cloud Messaging API Admin.",
      "SENDER_ID_MISMATCH": "The service account belongs to another project than project_id.",
      "NOT_FOUND": "There is no such project: check project_id.",
      "UNAUTHENTICATED": account,
    ], otherAdvice: account)

  private static let account =
    "Make a new key for the service account in the Firebase console, under project settings, service "
    + "accounts."
}

/// Settings of connections to FCM, for all credentials.
package struct FCMConfiguration: Sendable {
  /// Google asks for one to four connections; idle ones cost it nothing for minutes.
  package var connections: HTTP2PoolConfiguration
  /// Maximum number of messages a minute for a project (Google's default quota); `nil` for no
  /// limit. The rate begins at a tenth and grows to it over a minute, as Google asks.
  package var messagesPerMinute: Double? = 600_000

  package init() {
    connections = HTTP2PoolConfiguration(idleTimeout: .seconds(5 * 60))
    connections.maxConnections = 4
  }
}
