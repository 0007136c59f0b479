package import NotificationHubs

/// Whom a query reaches, page by page.
///
/// A ``RegistrationID`` is where a reading of an audience goes on, so every number that a
/// notification's audience has must be readable before its first page. One SQLite writer gives
/// numbers in the order of its commits, which holds that by itself. Nodes that take numbers in
/// blocks do not commit in their order: such an engine bounds a reading by the snapshot of the
/// acceptance (``AudienceQuery/notification``), or numbers within a slot under a lock.
package protocol TargetStore: Sendable {
  /// The next targets of a query after a registration number; at most `limit`.
  func targets(_ query: AudienceQuery, after: RegistrationID, limit: Int) async throws -> TargetPage
}

/// Whom a query reaches: the targets themselves, their number, a sample.
package protocol AudienceStore: TargetStore {
  func count(_ query: AudienceQuery) async throws -> Int
  /// Up to `limit` members of an audience, drawn at random; none is marked as a duplicate.
  func sample(_ query: AudienceQuery, limit: Int) async throws -> TargetPage
  /// The template registrations that a query of this kind reaches, by platform and template name.
  func templateCounts(_ query: AudienceQuery) async throws -> [TemplateKey: Int]
}

/// A state of a store, as it gave it out; only the same store can tell which of two is the later.
///
/// Opaque, because engines have different ones: SQLite the number of its last commit, an engine
/// with several writers the snapshot of its own that a page was read in.
package struct StoreVersion: Hashable, Sendable {
  package let rawValue: Int64

  package init(rawValue: Int64) { self.rawValue = rawValue }

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
