package import Foundation
package import HubCore
import NotificationHubs

extension InMemoryHubStore {
  func keepOutcomes(of checkpoint: Checkpoint, in entry: inout Entry) {
    entry.record.keeping = checkpoint.keeping
    guard checkpoint.keeping != .none else { return }
    var kept = checkpoint.failures
    if checkpoint.keeping == .all {
      kept += checkpoint.successes.map {
        Checkpoint.Failure(
          registration: $0.registration, outcome: .success, status: 200, reason: nil,
          attempts: $0.attempts)
      }
    }
    for failure in kept {
      entry.failures[failure.registration] = failure
      entry.times[failure.registration] = checkpoint.at
    }
  }

  package func outcomes(
    of id: NotificationID, hub: Hub.ID, _ filter: OutcomeFilter, after: RegistrationID, limit: Int
  ) throws -> OutcomePage {
    try check()
    guard let entry = entries[id], entry.record.hub == hub else { return OutcomePage() }
    let rows = try book(hub).rows
    let found = entry.failures.keys.filter { $0 > after }.sorted()
      .map { kept($0, in: entry, rows: rows) }.filter(filter.matches)
    let page = Array(found.prefix(limit))
    return OutcomePage(
      outcomes: page, next: found.count > limit ? page.last?.failure.registration : nil)
  }

  private func kept(
    _ number: RegistrationID, in entry: Entry, rows: [RegistrationID: Row]
  ) -> KeptOutcome {
    let failure =
      entry.failures[number]
      ?? Checkpoint.Failure(registration: number, outcome: .unknownError, status: 0, reason: nil)
    if let named = directTarget(number, of: entry.record.id) {
      return KeptOutcome(
        failure: failure, at: entry.times[number], platform: named.platform,
        handle: named.handle, registrationID: nil, installationID: nil)
    }
    let row = entry.removed[number] ?? rows[number]
    let platform: PushPlatform? =
      if case .native(let platform) = entry.record.request.format { platform } else { nil }
    return KeptOutcome(
      failure: failure, at: entry.times[number], platform: row?.draft.platform ?? platform,
      handle: row.map { String(decoding: $0.draft.channel.storedBytes, as: UTF8.self) },
      registrationID: row?.publicID ?? Self.coding.id(of: number, hub: entry.record.hub),
      installationID: row.flatMap { $0.installation.isEmpty ? nil : $0.installation })
  }

  package func retry(
    of id: NotificationID, hub: Hub.ID, registration: RegistrationID
  ) throws -> Checkpoint.Retry? {
    try check()
    guard let entry = entries[id], entry.record.hub == hub else { return nil }
    return entry.retries[registration]
  }

  package func clearOutcomes(before limit: Date, keeping maximum: Int) throws -> Bool {
    try check()
    let kept = entries.values.filter { !$0.failures.isEmpty }
      .sorted { ($0.times.values.max() ?? limit) < ($1.times.values.max() ?? limit) }
    guard let oldest = kept.first else { return false }
    let total = kept.reduce(0) { $0 + $1.failures.count }
    let isOver = (oldest.times.values.max() ?? limit) < limit
    guard isOver || total > maximum else { return false }
    // The hub that keeps the most makes room.
    let sizes = Dictionary(grouping: kept) { $0.record.hub }
      .mapValues { $0.reduce(0) { $0 + $1.failures.count } }
    let largest = sizes.max { $0.value < $1.value }?.key
    let next = isOver ? oldest : kept.first { $0.record.hub == largest } ?? oldest
    entries[next.record.id]?.failures = [:]
    entries[next.record.id]?.record.hasClearedOutcomes = true
    return true
  }
}
