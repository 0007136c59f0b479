package import Foundation
package import NotificationHubs

/// The audience of a query, page by page.
///
/// A ``RegistrationID`` is the position at which reading of an audience continues: everything that
/// was committed when a notification was accepted is read, whatever its number. Later registrations
/// may be read or not: nodes that allocate numbers in blocks do not commit in their order.
package protocol TargetStore: Sendable {
  /// The next targets of a query after a registration number; at most `limit`.
  func targets(_ query: AudienceQuery, after: RegistrationID, limit: Int) async throws -> TargetPage
}

/// The audience of a query: the targets themselves, their number, a sample.
package protocol AudienceStore: TargetStore {
  func count(_ query: AudienceQuery) async throws -> Int
  /// Up to `limit` members of an audience, drawn at random; none is marked as a duplicate.
  func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage
  /// The registrations that sends to an expression reach, whatever their kind; `nil` is everyone.
  /// - Parameter asOf: Registrations that have expired by then are excluded.
  func counts(
    of expression: TagExpression?, hub: Hub.ID, asOf: Date
  ) async throws -> AudienceCounts
}

/// Number of registrations that an expression reaches. Counts of 0 are omitted.
package struct AudienceCounts: Hashable, Sendable {
  /// Number reached by native sends.
  package var native: [PushPlatform: Int] = [:]
  /// Number reached by template sends.
  package var templates: [TemplateKey: Int] = [:]
  /// Whether only a part of the registrations was counted, and the total extrapolated.
  package var isEstimate = false

  package init() {}

  package mutating func add(_ others: AudienceCounts) {
    native.merge(others.native, uniquingKeysWith: +)
    templates.merge(others.templates, uniquingKeysWith: +)
    isEstimate = isEstimate || others.isEstimate
  }

  /// Extrapolates from some of equal parts to all of them.
  package mutating func extrapolate(from counted: Int, to parts: Int) {
    native = native.mapValues { $0 * parts / counted }
    templates = templates.mapValues { $0 * parts / counted }
    isEstimate = true
  }
}

/// A state of a store; only the same store can compare two of them.
///
/// Opaque, because engines have different ones: SQLite the number of its last commit, an engine
/// with several writers the snapshot of the transaction that read a page.
package struct StoreVersion: Hashable, Sendable {
  package let rawValue: Int64
  /// `nil` for an engine with numbered commits.
  package let snapshot: String?

  package init(rawValue: Int64) {
    self.rawValue = rawValue
    snapshot = nil
  }

  package init(snapshot: String) {
    rawValue = 0
    self.snapshot = snapshot
  }

  /// The state before everything, and the one after everything.
  package static let oldest = StoreVersion(rawValue: 0)
  package static let newest = StoreVersion(rawValue: .max)
}

/// The key by which template registrations are counted.
package struct TemplateKey: Hashable, Sendable {
  package let platform: PushPlatform
  /// Empty when the registration has no name.
  package let name: String

  package init(platform: PushPlatform, name: String) {
    self.platform = platform
    self.name = name
  }
}
