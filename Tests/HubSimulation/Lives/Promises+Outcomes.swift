import HubCore
import NotificationHubs

/// The answers of services, push by push, as far as they decide over outcomes.
struct Answers {
  /// Pushes that a service has refused for good.
  fileprivate var final: Set<Observations.PushKey> = []
  /// Handles that were called dead.
  fileprivate var dead: Set<String> = []
  /// Lanes whose credential was, or may have been, refused.
  fileprivate var refused: Set<Lane> = []

  mutating func note(_ call: ServiceCall, _ lanes: [Lane]) {
    guard call.isAnswered, 400..<500 ~= call.status, call.status != 429 else { return }
    if call.refusal != nil { refused.formUnion(lanes) }
    // WNS and browsers' services ask for patience with 406.
    guard !call.service.isForTokens, call.status != 406 else { return }
    let handle = Names.handle(call.handle, of: call.service)
    if call.isDead { dead.insert(handle) }
    if let line = Names.line(in: call.body) { final.insert(.init(line: line, handle: handle)) }
  }
}

/// An outcome is what the services' answers, and what clients have done, make of it.
extension Life {
  /// Outcomes that pass, and are the last only once the notification's time is over.
  static let passing: Set<NotificationOutcome> = [
    .abandonedNotificationMessages, .pnsUnreachable, .pnsServerError, .pnsUnavailable, .throttled,
    .channelThrottled, .tokenProviderUnreachable, .tokenProviderInterfaceError,
  ]

  /// FCM asks for a minute of patience where its answer names no time.
  func mayHaveQuota(_ row: NotificationRow) -> Bool {
    services(of: row).contains(.fcm) && plan.lines.contains { $0.act == .throttle && $0[0] == 1 }
  }

  /// The push services that a notification may go to.
  func services(of row: NotificationRow) -> [SimulatedService] {
    guard case .native(let platform) = row.record.audience.kind else { return pushServices }
    return [LifeServices.service(platform)]
  }

  func judgeKept(
    _ seen: Observations.Notification, _ row: NotificationRow, _ sent: Set<String>,
    _ state: SimulatedDatabase.State
  ) {
    for (registration, kept) in row.failures.sorted(by: { $0.key < $1.key }) {
      let handles = seen.handles.filter { $0.value.contains(registration) }
      let outcome = kept.failure.outcome
      guard !handles.isEmpty, !Self.passing.contains(outcome) else { continue }
      let isRight =
        switch outcome {
        case .success: handles.keys.contains(where: sent.contains)
        // The database may have lost the abort that a node has heard of.
        case .aborted: plan.lines.contains { $0.act == .abort && $0[0] == seen.line }
        case .skipped: handles.values.contains { $0.count > 1 }
        case .badChannel, .expiredChannel:
          // A registration that is gone, or of another service, by the time of a retry counts as dead.
          handles.keys.contains(where: observations.answers.dead.contains)
            || !seen.isDirect && hasChanged(registration, since: seen, state)
        case .invalidCredentials, .invalidToken, .wrongToken:
          handles.keys.contains { mayRefuse($0, of: seen.line) }
        default:
          handles.keys.contains {
            observations.answers.final.contains(.init(line: seen.line, handle: $0))
          }
        }
      expect(
        .oneOutcome, isRight,
        "\(seen.line) keeps \(outcome.rawValue) for registration \(registration) "
          + "(\(handles.keys.map(Names.short).sorted())), and no service or client has said so: "
          + (kept.failure.reason ?? ""))
    }
  }

  private func hasChanged(
    _ registration: RegistrationID, since seen: Observations.Notification,
    _ state: SimulatedDatabase.State
  ) -> Bool {
    guard let now = state.registrations[number: registration] else { return true }
    return now.etag != seen.audience[registration]?.etag
  }

  /// Whether a hub's credential for a handle was, or may have been, one that its service refuses.
  private func mayRefuse(_ handle: String, of line: Int) -> Bool {
    guard let index = Names.index(ofHandle: handle) else { return true }
    let platform = Names.platform(ofHandle: index)
    let hub = lines[line]?[0] ?? 0
    let lane = Lane(hub: hub, service: LifeServices.service(platform))
    return observations.answers.refused.contains(lane)
      || spoiltCredentials.contains([hub, Names.platforms.firstIndex(of: platform) ?? 0])
  }
}
