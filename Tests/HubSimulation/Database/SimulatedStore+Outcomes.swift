package import Foundation
package import HubCore
import NotificationHubs

/// Outcomes of a notification, device by device.
extension SimulatedStore {
  package func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) async throws -> OutcomePage {
    let coding = coding
    return try await read { state in
      guard limit > 0, let row = state.notification(id, hub: hub) else { return OutcomePage() }
      let rows = row.failures.filter { $0.key > after }.sorted { $0.key < $1.key }
      let (outcomes, next) = listPage(of: rows.lazy.map { ($0, $1) }, limit: limit) { kept in
        let outcome = state.outcome(kept, of: row, coding)
        return filter.matches(outcome) ? outcome : nil
      }
      return OutcomePage(outcomes: outcomes, next: next)
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
      let holders = state.notifications.filter { !$0.failures.isEmpty }
        .sorted { ($0.keptAt ?? before, $0.number) < ($1.keptAt ?? before, $1.number) }
      var cleared = holders.first { $0.keptAt.map { $0 < before } ?? true }
      if cleared == nil {
        guard holders.reduce(0, { $0 + $1.failures.count }) > maximum else { return false }
        let largest = largest(holders.map { ($0.record.hub, $0.failures.count) })
        cleared = holders.first { $0.record.hub == largest }
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
    guard !request.isDirect else {
      return KeptOutcome(
        failure: kept.failure, at: kept.at, platform: platform, handle: row.target(number)?.handle,
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
