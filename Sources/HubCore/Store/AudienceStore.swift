package import Foundation
package import NotificationHubs

/// The audience of a query, page by page.
///
/// A ``RegistrationID`` is where a reading of an audience goes on: what was committed when a
/// notification was accepted is read, whatever its number. Registrations that come later may be
/// read or not: nodes that take numbers in blocks do not commit in their order.
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
  /// - Parameter asOf: Registrations that have expired by then are left out.
  func counts(
    of expression: TagExpression?, hub: Hub.ID, asOf: Date
  ) async throws -> AudienceCounts
}

/// How many registrations an expression reaches. Nobody is in it as 0.
package struct AudienceCounts: Hashable, Sendable {
  /// By native sends.
  package var native: [PushPlatform: Int] = [:]
  /// By template sends.
  package var templates: [TemplateKey: Int] = [:]
  /// Whether a part of the registrations was counted, and the whole follows from it.
  package var isEstimate = false

  package init() {}

  package mutating func add(_ others: AudienceCounts) {
    native.merge(others.native, uniquingKeysWith: +)
    templates.merge(others.templates, uniquingKeysWith: +)
    isEstimate = isEstimate || others.isEstimate
  }

  /// Takes what was counted in some of as many equal parts for all of them.
  package mutating func extrapolate(from counted: Int, to parts: Int) {
    native = native.mapValues { $0 * parts / counted }
    templates = templates.mapValues { $0 * parts / counted }
    isEstimate = true
  }
}

/// A state of a store, as it gave it out; only the same store can tell which of two is the later.
///
/// Opaque, because engines have different ones: SQLite the number of its last commit, an engine
/// with several writers the snapshot of its own that a page was read in.
package struct StoreVersion: Hashable, Sendable {
  package let rawValue: Int64
  /// `nil` for an engine whose commits have numbers.
  package let snapshot: String?

  package init(rawValue: Int64) {
    self.rawValue = rawValue
    snapshot = nil
  }

  package init(snapshot: String) {
    rawValue = 0
    self.snapshot = snapshot
  }

  /// Before everything, and after everything.
  package static let oldest = StoreVersion(rawValue: 0)
  package static let newest = StoreVersion(rawValue: .max)
}

/// What template registrations are counted by.
package struct TemplateKey: Hashable, Sendable {
  package let platform: PushPlatform
  /// Empty when the registration names none.
  package let name: String

  package init(platform: PushPlatform, name: String) {
    self.platform = platform
    self.name = name
  }
}
