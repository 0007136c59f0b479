import Foundation
import HubCore

/// The progress of a part of a notification.
struct Progress: Equatable {
  let epoch: Int64
  let position: RegistrationID
  let isRead: Bool
  let outcomes: Int
  let retries: [RegistrationID: Date]

  init(_ part: WorkPart) {
    epoch = part.epoch
    position = part.position
    isRead = part.isRead
    outcomes = part.counts.values.reduce(0, +)
    retries = part.retries.mapValues(\.due)
  }
}

/// Work that has a node goes on.
extension Life {
  /// A lane that has failed tries again after half a minute, or a minute where it was throttled.
  private static let rest = 60.0
  /// A credential that was refused is tried again so late.
  private static let refusedRest = 600.0
  private static let patience = 75.0

  /// A service is in trouble, or asks for patience: its lanes may rest, and a while longer.
  func trouble(_ service: SimulatedService, until end: Double, isRefusal: Bool = false) {
    let lane = service.pushService
    let rest = isRefusal ? Self.refusedRest : Self.rest
    observations.troubles[lane] = max(observations.troubles[lane] ?? 0, end + rest)
  }

  func watchTrouble(_ call: ServiceCall) {
    guard !call.isTaken || !call.isAnswered || call.delay > 1 else { return }
    // Of a credential that was refused none shows.
    let isRefusal = call.refusal != nil || call.credential.isEmpty
    guard isRefusal || !call.isDead else { return }
    trouble(
      call.service, until: world.seconds + call.delay + Double(call.retryAfter ?? 0),
      isRefusal: isRefusal)
  }

  /// Each part that a node has moves on within a while, unless all of it is to be tried again later, or
  /// its lane rests.
  func watchProgress(_ state: SimulatedDatabase.State) {
    var seen: [String: (mark: Progress, since: Double)] = [:]
    // Times of retries are of the database's clock.
    let isSet = steppedAt > 0
    let ahead = databaseClock.date.timeIntervalSince(World.start) - world.seconds
    for number in observations.open {
      guard let row = state.notifications[number: number] else { continue }
      for part in row.parts where !part.isDone {
        let (key, mark) = ("\(number)/\(part.part)", Progress(part))
        let known = observations.progress[key].flatMap { $0.mark == mark ? $0 : nil }
        let last = known ?? (mark, world.seconds)
        seen[key] = last
        guard !isSet else { continue }
        let due = part.retries.values.map {
          (at: $0.due.timeIntervalSince(World.start) - ahead, attempts: $0.attempts)
        }
        let line = observations.notifications[number]?.line ?? 0
        for retry in due where known == nil {
          expect(
            .worked,
            retry.at - world.seconds <= longestPause(of: row, attempts: retry.attempts) + 1,
            "\(line) is tried again in \(Int(retry.at - world.seconds)) s, after "
              + Texts.count(retry.attempts, "try", "tries"))
        }
        guard let owner = processes.first(where: { $0.store.nodeID == part.owner }),
          isAble(owner, for: Self.patience)
        else { continue }
        let first = part.isRead ? due.map(\.at).min() ?? 0 : 0
        let since = max(last.since, first, restEnd(of: row))
        guard world.seconds - since > 15 else { continue }
        expect(
          .worked, world.seconds - since <= Self.patience,
          "part \(part.part) of \(line) has not moved for \(Int(world.seconds - since)) s at node "
            + "\(owner.place), whose services are well: position \(part.position), "
            + Texts.count(part.retries.count, "retry", "retries"))
      }
    }
    observations.progress = seen
  }

  /// The longest pause before the next try, in seconds (docs/protocol/push-services/README.md, section 3).
  private func longestPause(of row: NotificationRow, attempts: Int) -> Double {
    let services = services(of: row)
    let asked =
      plan.lines.map { line in
        guard [.throttle, .fail].contains(line.act),
          services.contains(LifeServices.service(Names.platforms[line[0]]))
        else { return 0 }
        // WNS and FCM ask for a minute where they name no time.
        return line.act == .throttle ? max(line[2], 60) : line[3]
      }.max() ?? 0
    let least = mayHaveQuota(row) ? 60 : 10
    let own = min(600, Double(2 * least << min(max(attempts, 1) - 1, 10)))
    return max(own, Double(asked) + min(Double(asked) / 10, 30))
  }

  /// When the last of the services that a notification needs is well, in seconds.
  private func restEnd(of row: NotificationRow) -> Double {
    // If memory is short, targets of other services stand before those of this one.
    if case .native(let platform) = row.record.audience.kind, plan[.held] >= 64_000 {
      return observations.troubles[LifeServices.service(platform)] ?? 0
    }
    return observations.troubles.values.max() ?? 0
  }
}
