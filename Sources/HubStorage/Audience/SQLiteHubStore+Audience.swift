package import Foundation
package import HubCore
package import NotificationHubs
import SQLDatabase

extension SQLiteHubStore {
  package func counts(
    of expression: TagExpression?, hub: Hub.ID, asOf: Date
  ) async throws -> AudienceCounts {
    var (counts, isComplete) = try await readFreely {
      try AudienceCountReader($0).counts(of: expression, hub: hub, asOf: asOf)
    }
    if isComplete { return counts }
    let query = AudienceQuery(hub: hub, kind: .template, expression: expression, asOf: asOf)
    var next: UInt32? = 0
    // Counts in slices, so that other reads get their turn.
    while let first = next {
      let stretch = try await readFreely {
        try AudienceCountReader($0).templateCounts(query, from: first)
      }
      counts.templates.merge(stretch.counts, uniquingKeysWith: +)
      next = stretch.next
    }
    return counts
  }
}

extension SQLiteHubStore {
  package func targets(
    _ query: AudienceQuery, after: RegistrationID, limit: Int
  ) async throws -> TargetPage {
    try await readFreely(as: .delivery(of: query.hub)) {
      try TargetReader($0).targets(query, after: after, limit: limit)
    }
  }

  package func count(_ query: AudienceQuery) async throws -> Int {
    try await readFreely { try TargetReader($0).count(query) }
  }

  package func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage {
    try await readFreely { try TargetReader($0).sample(query, limit: limit) }
  }
}
