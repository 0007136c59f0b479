import Foundation
import NotificationHubs
import Synchronization

/// Whether the server can do its work, and what an operator should look at.
package struct HealthReport: Hashable, Sendable {
  package struct Finding: Hashable, Sendable {
    /// A word that stays, such as `store-unavailable`.
    package let code: String
    /// For people. Anyone may read it, so it names no hub.
    package let text: String

    package init(code: String, text: String) {
      self.code = code
      self.text = text
    }
  }

  /// Why it is not ready; empty when it is.
  package var reasons: [Finding] = []
  /// What does not keep it from working.
  package var warnings: [Finding] = []

  package var isReady: Bool { reasons.isEmpty }
}

extension LogState {
  /// `nil` while somebody reads.
  package var finding: HealthReport.Finding? {
    guard isStuck else { return nil }
    return .init(
      code: "log-stuck",
      text:
        "nobody reads the log: what does not fit into its queue is dropped, \(dropped) lines so "
        + "far; look at what reads the server's standard error")
  }
}

/// Looks after the parts on which the service depends.
package final class HubHealth: Sendable {
  private let store: any StoreUpkeep
  private let dispatcher: Dispatcher
  /// `nil` without gateways, which know when credentials end.
  package let credentials: CredentialWatch?
  private let clock: HubClock
  private let machine: HubClock
  /// What was found at the start, and wants an operator's eye until the next.
  private let found: [HealthReport.Finding]
  private let looking: @Sendable () async -> [HealthReport.Finding]
  private let isStopping = Atomic<Bool>(false)
  private let unclaimed = Atomic(0)
  /// What the machine's clock, which can be set, was ahead of its steady one at the start, in
  /// seconds.
  private let lead: Double

  /// How far the machine's clock may be set before it is worth a word, in seconds.
  private static let clockTolerance = 60.0

  /// - Parameters:
  ///   - clock: The store's.
  ///   - machine: The machine's own; a step of it is worth a word.
  ///   - looking: Looks at what else there is, each time.
  package init(
    store: any StoreUpkeep & HubDirectoryStore, dispatcher: Dispatcher,
    gateways: (any GatewayDirectory)?,
    clock: HubClock, machine: HubClock, found: [HealthReport.Finding] = [],
    looking: @escaping @Sendable () async -> [HealthReport.Finding] = { [] }
  ) {
    self.found = found
    self.looking = looking
    self.store = store
    self.dispatcher = dispatcher
    credentials = gateways.map {
      CredentialWatch(store: store, gateways: $0, clock: clock)
    }
    self.clock = clock
    self.machine = machine
    lead = machine.lead
  }

  /// From here on the server is not ready any more.
  package func beginStopping() { isStopping.store(true, ordering: .relaxed) }

  package func report() async -> HealthReport {
    var report = HealthReport()
    switch await store.condition() {
    case .healthy: break
    case .readOnly(let reason):
      report.reasons.append(.init(code: "store-read-only", text: reason))
    case .unavailable(let reason):
      report.reasons.append(.init(code: "store-unavailable", text: reason))
    case .leaseLost(let reason):
      report.reasons.append(.init(code: "lease-lost", text: reason))
    }
    let status = await dispatcher.status()
    if isStopping.load(ordering: .relaxed) || status.isStopping {
      report.reasons.append(.init(code: "stopping", text: "the server is stopping"))
    } else if !status.isRunning {
      report.reasons.append(
        .init(code: "not-started", text: "the delivery of notifications has not started yet"))
    }
    report.warnings = found + Self.warnings(of: status.lanes)
    report.warnings += await looking()
    if status.unreadable > 0 {
      report.warnings.append(
        .init(
          code: "notification-unreadable",
          text: "\(status.unreadable) stored notifications cannot be read and are not delivered; "
            + "the log says which"))
    }
    if unclaimedWork > 0 {
      report.warnings.append(
        .init(code: "work-unclaimed", text: Self.unclaimedText(unclaimedWork)))
    }
    // Who asks must not wait for a store that does not answer.
    if let credentials, report.reasons.isEmpty {
      report.warnings += Self.warnings(of: await credentials.near(), at: clock.now())
    }
    report.warnings += clockWarnings()
    return report
  }

  /// Between two looks for work that nobody does.
  private static let workPeriod = Duration.milliseconds(2_500)

  /// Notifications that were due for five seconds, and that nobody delivered, at the last two looks:
  /// between two parts of one a node may have none.
  package var unclaimedWork: Int { unclaimed.load(ordering: .relaxed) }

  /// Looks for work that nobody does until its task is cancelled, and tells the log when there is
  /// some, and when it has been taken up. While the store cannot be asked, the last answer stands.
  package func watchWork(log: HubLog) async {
    var before = 0
    while !Task.isCancelled {
      if let found = try? await dispatcher.unclaimedWork() {
        let lasting = min(found, before)
        before = found
        let told = unclaimed.exchange(lasting, ordering: .relaxed)
        if lasting > 0, told == 0 {
          log(.error, "work.unclaimed", Self.unclaimedText(lasting))
        } else if lasting == 0, told > 0 {
          log(.info, "work.claimed", "the notifications that nobody delivered have been taken up")
        }
      }
      do { try await clock.sleep(Self.workPeriod) } catch { return }
    }
  }

  private static func unclaimedText(_ count: Int) -> String {
    "\(count) notifications are due for more than five seconds, and no node delivers them; "
      + "if that lasts, restart the nodes one after the other"
  }

  private static func warnings(of lanes: [DispatchStatus.Lane]) -> [HealthReport.Finding] {
    lanes.flatMap { lane -> [HealthReport.Finding] in
      var found: [HealthReport.Finding] = []
      let platform = lane.platform.rawValue
      if lane.isRefused {
        found.append(
          .init(
            code: "credential-refused",
            text: "\(platform) refuses a hub's credential"
              + (lane.reason.map { " (\($0))" } ?? "") + "; the log says which"))
      } else if lane.restsUntil != nil || lane.isDown {
        found.append(
          .init(
            code: "push-service-resting",
            text: lane.isDown
              ? "\(platform) cannot be reached or fails" + (lane.reason.map { " (\($0))" } ?? "")
              : "\(platform) has asked for a pause"))
      }
      if lane.isAlarmed {
        found.append(
          .init(
            code: "dead-handles",
            text: "\(platform) calls so many handles dead that none is removed; check the "
              + "credential's app and environment, and see docs/operate/troubleshooting.md"))
      }
      return found
    }
  }

  /// An end makes nobody unready: other hubs and platforms go on, and another start would not help.
  private static func warnings(
    of ends: [CredentialEnd], at now: Date
  ) -> [HealthReport.Finding] {
    ends.map { end in
      let isOver = end.isOver(at: now)
      return .init(
        code: isOver ? "credential-expired" : "credential-expires",
        text:
          "a hub's \(end.platform.rawValue) credential \(isOver ? "has expired" : "expires") on "
          + "\(end.day); the log says which")
    }
  }

  private func clockWarnings() -> [HealthReport.Finding] {
    let drift = machine.lead - lead
    guard abs(drift) > Self.clockTolerance else { return [] }
    return [
      .init(
        code: "clock-set",
        text:
          "the machine's clock was set by \(Int(drift.rounded())) s since the start; tokens and "
          + "schedules follow it")
    ]
  }
}

extension HubClock {
  /// What ``now`` is ahead of ``steady``, in seconds.
  fileprivate var lead: Double { now().timeIntervalSince(steady()) }
}
