import Foundation
import NotificationHubs
import Synchronization

/// Whether the server can do its work, with findings for an operator.
package struct HealthReport: Hashable, Sendable {
  package struct Finding: Hashable, Sendable {
    /// A stable code, such as `store-unavailable`.
    package let code: String
    /// A text for people. Anyone may read it, so it names no hub.
    package let text: String

    package init(code: String, text: String) {
      self.code = code
      self.text = text
    }
  }

  /// The reasons that it is not ready; empty when it is.
  package var reasons: [Finding] = []
  /// Findings that do not prevent it from working.
  package var warnings: [Finding] = []

  package var isReady: Bool { reasons.isEmpty }
}

extension LogState {
  /// `nil` while the log is being read.
  package var finding: HealthReport.Finding? {
    guard isStuck else { return nil }
    return .init(
      code: "log-stuck",
      text:
        "nobody reads the log: what does not fit into its queue is dropped, \(dropped) lines so "
        + "far; look at what reads the server's standard error")
  }
}

/// Checks the parts on which the service depends.
package final class HubHealth: Sendable {
  private let store: any StoreUpkeep
  private let dispatcher: Dispatcher
  /// `nil` without gateways, which know when credentials expire.
  package let credentials: CredentialWatch?
  private let clock: HubClock
  private let machine: HubClock
  /// Findings of the start, reported to an operator until the next start.
  private let found: [HealthReport.Finding]
  private let looking: @Sendable () async -> [HealthReport.Finding]
  private let isStopping = Atomic<Bool>(false)
  private let unclaimed = Atomic(0)
  /// The lead of the machine's adjustable clock over its steady one at the start, in seconds.
  private let lead: Double

  /// Maximum step of the machine's clock that is not reported, in seconds.
  private static let clockTolerance = 60.0

  /// - Parameters:
  ///   - clock: The store's clock.
  ///   - machine: The machine's own clock, whose steps are reported.
  ///   - looking: Returns further findings, at each check.
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

  /// The server is not ready from here on.
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
    // A health check must not wait for a store that does not reply.
    if let credentials, report.reasons.isEmpty {
      report.warnings += Self.warnings(of: await credentials.near(), at: clock.now())
    }
    report.warnings += clockWarnings()
    return report
  }

  /// Pause between two checks for unclaimed work.
  private static let workPeriod = Duration.milliseconds(2_500)

  /// Number of notifications that were due for five seconds and that no node delivered, at both of
  /// the last two checks: between two parts a notification may briefly have no node.
  package var unclaimedWork: Int { unclaimed.load(ordering: .relaxed) }

  /// Checks for unclaimed work until its task is cancelled, and logs when there is some, and when
  /// it has been claimed. While the store is unavailable, the last result stands.
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

  /// An expired credential does not make the server unready: other hubs and platforms work, and a
  /// restart would not help.
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
  /// The lead of ``now`` over ``steady``, in seconds.
  fileprivate var lead: Double { now().timeIntervalSince(steady()) }
}
