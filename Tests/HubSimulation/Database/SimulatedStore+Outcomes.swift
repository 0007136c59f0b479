package import Foundation
package import HubCore
import NotificationHubs

/// What became of a notification for single devices.
extension SimulatedStore {
  package func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage {
    let coding = coding
    return try await read { state in
      guard limit > 0, let row = state.notification(id, hub: hub) else { return OutcomePage() }
      var page = OutcomePage()
      var last = after
      for number in row.failures.keys.sorted() where number > after {
        if page.outcomes.count == limit {
          page.next = last
          break
        }
        last = number
        guard let kept = row.failures[number] else { continue }
        let outcome = state.outcome(kept, of: row, coding)
        if filter.matches(outcome) { page.outcomes.append(outcome) }
      }
      return page
    }
  }

  package func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) async throws -> Checkpoint.Retry? {
    try await read { state in
      state.notification(id, hub: hub)?.parts.lazy.compactMap { $0.retries[registration] }.first
    }
  }

  package func clearOutcomes(before: Date, keeping maximum: Int) async throws -> Bool {
    try await write(ifUnclear: .again) { state in
      let keepers = state.notifications.filter { !$0.failures.isEmpty }
        .sorted { ($0.keptAt ?? before, $0.number) < ($1.keptAt ?? before, $1.number) }
      var cleared = keepers.first { $0.keptAt.map { $0 < before } ?? true }
      if cleared == nil {
        // The hub that keeps the most makes room, so that none loses its own for another's.
        var totals: [Hub.ID: Int] = [:]
        for row in keepers { totals[row.record.hub, default: 0] += row.failures.count }
        guard totals.values.reduce(0, +) > maximum else { return false }
        let largest = totals.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key
        cleared = keepers.first { $0.record.hub == largest }
      }
      guard let cleared else { return false }
      state.notifications.change(cleared.number) { row in
        row.failures = [:]
        row.record.hasClearedOutcomes = true
      }
      return true
    }
  }
}

extension SimulatedDatabase.State {
  fileprivate func outcome(
    _ kept: KeptFailure, of row: NotificationRow, _ coding: RegistrationIDCoding
  ) -> KeptOutcome {
    let (request, number) = (row.record.request, kept.failure.registration)
    var platform: PushPlatform?
    if case .native(let meant) = request.format { platform = meant }
    if request.isDirect {
      let index = Int(number) - 1
      return KeptOutcome(
        failure: kept.failure, at: kept.at, platform: platform,
        handle: row.targets.indices.contains(index) ? row.targets[index].handle : nil,
        registrationID: nil, installationID: nil)
    }
    let live = registration(number, hub: row.record.hub)
    let installation = live.flatMap { installations[number: $0.installation]?.installation }
    return KeptOutcome(
      failure: kept.failure, at: kept.at,
      platform: kept.device?.platform ?? live?.draft.platform ?? platform,
      handle: kept.device?.handle ?? live?.handle,
      registrationID: kept.device?.registrationID ?? live?.id(coding)
        ?? coding.id(of: number, hub: row.record.hub),
      installationID: kept.device?.installationID ?? installation?.installationID)
  }
}
