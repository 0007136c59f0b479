import Foundation
package import NotificationHubs
import Synchronization

extension HubService {
  /// Sends to a few devices drawn at random from the audience, and waits for the replies of the
  /// push services (docs/protocol/rest.md, section 5.7). Nothing is stored, and nothing retried.
  ///
  /// - Parameter headers: As of ``send(hub:headers:body:)``.
  /// - Throws: ``HubFailure``: also 429 with `Retry-After` when the hub has used up its test sends
  ///   of this minute, and 400 for an `Idempotency-Key`, which a test send cannot honour.
  package func testSend(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8]
  ) async throws -> NotificationOutcomeReport {
    let headers = SendHeaders(headers)
    guard headers[SendHeaderName.idempotencyKey] == nil else {
      throw HubFailure(
        status: 400, message: "A test send takes no Idempotency-Key; every call sends again")
    }
    let request = try await read(headers, body)
    let now = clock.now()
    try testSends.take(hub.id, at: now)
    let record = NotificationRecord(
      id: NotificationID(at: now, random: random), hub: hub.id, request: request,
      state: .processing,
      enqueuedAt: now)
    let outcomes = try await answering {
      var page = try await store.sample(
        record.audience, limit: limits.testSendDevices)
      if case .native = request.format { page.keepOneOfEachHandle() }
      return try await dispatcher.work.deliverTrial(record, to: page)
    }
    let names = try await answering {
      try await store.registrationNames(outcomes.map(\.registration), hub: hub.id)
    }
    let successes = outcomes.count { $0.outcome.inTelemetry == .success }
    return NotificationOutcomeReport(
      success: successes, failure: outcomes.count - successes,
      results: outcomes.map { result in
        NotificationOutcomeReport.Result(
          platform: result.platform.sendFormat, pnsHandle: result.handle.firstLine,
          registrationID: names[result.registration] ?? "", outcome: result.outcome.sentence,
          status: Int(result.status), reason: result.reason)
      })
  }
}

extension TargetPage {
  /// Removes targets whose handle an earlier one has: a device gets a native send once
  /// (docs/protocol/rest.md, section 5.9). For pages of one platform.
  fileprivate mutating func keepOneOfEachHandle() {
    var seen: Set<String> = []
    targets = targets.filter {
      seen.insert(String(decoding: handles[$0.handle], as: UTF8.self).firstLine).inserted
    }
  }
}

extension String {
  /// The endpoint of a stored Web Push subscription (see ``TargetPage/handles``).
  var firstLine: String { String(prefix { $0 != "\n" }) }
}

/// Counts the test sends of each hub, so that a slow synchronous call is not misused for regular
/// sending (docs/protocol/rest.md, section 5.7). In memory: a restart resets it, and each of
/// several nodes has its share.
final class CallMeter: Sendable {
  private let perMinute: Int
  private let nodes: NodeCount
  /// The advice in the error for callers over the limit.
  private let advice: String
  /// The times of each hub's calls in the last minute, the oldest first.
  private let calls = Mutex<[Hub.ID: [Date]]>([:])

  init(perMinute: Int, of nodes: NodeCount = NodeCount(), _ advice: String) {
    self.perMinute = perMinute
    self.nodes = nodes
    self.advice = advice
  }

  /// Counts a call.
  /// - Throws: ``HubFailure`` with 429 and the seconds after which the next one is free.
  func take(_ hub: Hub.ID, at now: Date) throws(HubFailure) {
    let wait: Double? = calls.withLock { calls in
      // A clock that was set back must not lock anyone out for longer than a minute.
      var recent = (calls[hub] ?? []).filter { abs(now.timeIntervalSince($0)) < 60 }
      defer { calls[hub] = recent }
      if recent.count >= nodes.share(of: perMinute), let oldest = recent.first {
        return max(1, oldest.timeIntervalSince(now) + 60)
      }
      recent.append(now)
      return nil
    }
    guard let wait else { return }
    throw HubFailure(
      status: 429, message: "A hub takes \(perMinute) \(advice)",
      retryAfter: Int(min(wait, 60).rounded(.up)))
  }
}
