package import Foundation
package import NotificationHubs
import Synchronization
import Wire

/// The expiry of a hub's credential.
package struct CredentialEnd: Hashable, Sendable {
  package let hub: Hub.ID
  package let hubName: String
  package let platform: PushPlatform
  package let at: Date

  /// Time before its expiry at which a credential is reported, in seconds.
  package static let notice: TimeInterval = 30 * 86_400

  package func isOver(at now: Date) -> Bool { at <= now }
  /// Whether it has expired, or will within 30 days.
  package func isNear(at now: Date) -> Bool { at < now.addingTimeInterval(Self.notice) }

  /// Number of whole days left; negative once it has expired.
  package func daysLeft(at now: Date) -> Int {
    Int((self.at.timeIntervalSince(now) / 86_400).rounded(.down))
  }

  /// `2026-12-01`, in UTC.
  package var day: String { at.formatted(.iso8601.year().month().day()) }
}

/// Knows the expiry of the credentials of all hubs, including unused ones, and logs it each day
/// from 30 days before.
package final class CredentialWatch: Sendable {
  private let store: any HubDirectoryStore
  private let gateways: any GatewayDirectory
  private let clock: HubClock
  /// Reading a certificate's archive takes milliseconds, so it is done once for each change.
  private let known = Mutex<(version: Int, ends: [CredentialEnd])?>(nil)

  private static let period = Duration.seconds(86_400)

  package init(store: any HubDirectoryStore, gateways: any GatewayDirectory, clock: HubClock) {
    self.store = store
    self.gateways = gateways
    self.clock = clock
  }

  /// In the order of hubs and platforms. While the store is unavailable, the last known ones.
  package func ends() async -> [CredentialEnd] {
    do {
      let version = try await store.directoryVersion()
      if let known = known.withLock({ $0 }), known.version == version { return known.ends }
      let ends = try await read()
      known.withLock { $0 = (version, ends) }
      return ends
    } catch {
      return known.withLock { $0?.ends ?? [] }
    }
  }

  private func read() async throws -> [CredentialEnd] {
    var ends: [CredentialEnd] = []
    for hub in try await store.hubs() {
      for credential in try await store.credentials(hub: hub.id) {
        guard let end = gateways.end(of: credential) else { continue }
        ends.append(
          CredentialEnd(
            hub: hub.id, hubName: hub.name, platform: credential.platform, at: end))
      }
    }
    return ends.sorted { ($0.hub, $0.platform.rawValue) < ($1.hub, $1.platform.rawValue) }
  }

  /// Those that have expired, or will within 30 days.
  package func near() async -> [CredentialEnd] {
    let now = clock.now()
    return await ends().filter { $0.isNear(at: now) }
  }

  /// Logs at once and then each day, until its task is cancelled.
  package func run(log: HubLog) async {
    while !Task.isCancelled {
      let now = clock.now()
      for end in await near() { Self.tell(end, at: now, log) }
      do { try await clock.sleep(Self.period) } catch { return }
    }
  }

  private static func tell(_ end: CredentialEnd, at now: Date, _ log: HubLog) {
    let isOver = end.isOver(at: now)
    log(
      isOver ? .error : .warning, isOver ? "credential.expired" : "credential.expires",
      "the \(end.platform.rawValue) credential \(isOver ? "has expired" : "expires") on \(end.day); "
        + "renew it and set it with `belfry credential set`",
      [
        ("hub", .text(end.hubName)), ("platform", .text(end.platform.rawValue)),
        ("expiresAt", .text(WireDate.seconds(end.at))), ("days", .number(end.daysLeft(at: now))),
      ])
  }
}
