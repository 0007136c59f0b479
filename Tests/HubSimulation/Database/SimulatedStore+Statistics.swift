package import Foundation
package import HubCore
import NotificationHubs

/// The counts of one period. It has the number of registrations only of platforms where that has
/// changed.
package struct StatisticRow: NumberedRow {
  /// In periods since 1970.
  package let number: Int64
  package var point = StatisticPoint()
}

/// Statistics of hubs, by the minute and the hour.
extension SimulatedStore {
  package func statistics(_ span: StatisticSpan, hub: Hub.ID) async throws -> [StatisticPoint] {
    try await read { state in
      try state.requireHub(hub)
      let rows = state.statistics[HubKey(hub: hub, id: span.period)] ?? Table()
      var registrations = rows.prefix { $0.number < span.first }.reduce(into: [:]) { last, row in
        last.merge(row.point.registrations) { $1 }
      }
      return (0..<span.count).map { step in
        let start = span.first + Int64(step) * span.step
        var point = StatisticPoint()
        for row in rows.after(start - 1).prefix(while: { $0.number < start + span.step }) {
          point.accepted += row.point.accepted
          point.outcomes.merge(row.point.outcomes, uniquingKeysWith: +)
          registrations.merge(row.point.registrations) { $1 }
        }
        point.registrations = registrations.filter { $0.value > 0 }
        return point
      }
    }
  }

  package func totals() async throws -> StoreTotals {
    try await read { state in
      var totals = StoreTotals(
        unfinished: state.notifications.active.count(where: \.isOpen),
        scheduled: state.notifications.active.count { $0.record.state == .scheduled },
        retries: state.notifications.reduce(0) { sum, row in
          row.parts.reduce(sum) { $0 + $1.retries.count }
        }, feedback: state.feedback.count)
      for row in state.registrations { totals.registrations[row.draft.platform, default: 0] += 1 }
      return totals
    }
  }

  package func noteRegistrations(at: Date) async throws {
    let hasChanged = try await read { !$0.changedRegistrations().isEmpty }
    guard hasChanged else { return }
    try await write { state in
      for (hub, totals) in state.changedRegistrations() {
        state.count(hub: hub, at: at) { $0.registrations.merge(totals) { $1 } }
      }
    }
  }

  package func clearStatistics(asOf now: Date) async throws -> Bool {
    try await write { state in
      var hasCleared = false
      for hub in state.hubs {
        for period in StatisticPeriod.allCases {
          let place = HubKey(hub: hub.id, id: period)
          let limit = Int64(period.limit(asOf: now).timeIntervalSince1970) / Int64(period.length)
          if state.statistics[place]?.clear(before: limit) == true { hasCleared = true }
        }
      }
      return hasCleared
    }
  }
}

extension Table<StatisticRow> {
  /// - Returns: Whether there was something to be cleared.
  fileprivate mutating func clear(before limit: Int64) -> Bool {
    // The last ones before the limit say how many there were from there on.
    var seen: Set<PushPlatform> = []
    var hasCleared = false
    for row in prefix(while: { $0.number < limit }).reversed() {
      var point = StatisticPoint()
      point.registrations = row.point.registrations.filter { seen.insert($0.key).inserted }
      guard point != row.point else { continue }
      hasCleared = true
      self[number: row.number] =
        point == StatisticPoint() ? nil : StatisticRow(number: row.number, point: point)
    }
    return hasCleared
  }
}

extension SimulatedDatabase.State {
  /// Adds to what has happened in a hub.
  mutating func count(hub: Hub.ID, at: Date, _ add: (inout StatisticPoint) -> Void) {
    for period in StatisticPeriod.allCases {
      let number = Int64((at.timeIntervalSince1970 / Double(period.length)).rounded(.down))
      let place = HubKey(hub: hub, id: period)
      var row = statistics[place]?[number: number] ?? StatisticRow(number: number)
      add(&row.point)
      statistics[place, default: Table()].put(row)
    }
  }

  /// The hubs whose registrations have changed since they were noted, with the new numbers.
  fileprivate func changedRegistrations() -> [(hub: Hub.ID, totals: [PushPlatform: Int])] {
    var totals: [Hub.ID: [PushPlatform: Int]] = [:]
    for row in registrations { totals[row.hub, default: [:]][row.draft.platform, default: 0] += 1 }
    return hubs.compactMap { hub in
      var noted: [PushPlatform: Int] = [:]
      for row in statistics[HubKey(hub: hub.id, id: .minute)] ?? Table() {
        noted.merge(row.point.registrations) { $1 }
      }
      let present = totals[hub.id] ?? [:]
      var changed = present.filter { noted[$0.key] != $0.value }
      for (platform, total) in noted where total > 0 && present[platform] == nil {
        changed[platform] = 0
      }
      return changed.isEmpty ? nil : (hub.id, changed)
    }
  }
}
