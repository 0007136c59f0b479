package import HubCore
import NotificationHubs

extension OutcomeStore {
  /// The failures of a notification, in the order of the registrations, without the number of
  /// attempts; at most `limit`.
  package func failures(
    _ id: NotificationID, hub: Hub.ID, after: RegistrationID, limit: Int
  ) async throws -> [Checkpoint.Failure] {
    let all = OutcomeFilter(outcomes: Set(NotificationOutcome.allCases).subtracting([.success]))
    var failures: [Checkpoint.Failure] = []
    var place: RegistrationID? = after
    while let after = place, failures.count < limit {
      let page = try await outcomes(
        of: id, hub: hub, all, after: after, limit: limit - failures.count)
      failures += page.outcomes.map(\.failure).map {
        Checkpoint.Failure(
          registration: $0.registration, outcome: $0.outcome, status: $0.status, reason: $0.reason)
      }
      place = page.next
    }
    return failures
  }
}
