import HubCore
import NotificationHubs
import SQLDatabase

/// How many different tags and templates a hub may have.
struct VocabularyLimits: Hashable, Sendable {
  let tags: Int
  let templates: Int
}

/// Names of tags and texts of templates go with the last device that has them: they may say who
/// somebody was.
extension WriteSession {
  /// The most installations apart from their registrations that are read for one template; with more
  /// the template stays until a sweep or an erasure looks.
  private static let apartLimit = 100
  /// How many rows a sweep looks at in one transaction.
  private static let sweepLimit = 1_000

  /// Deletes what the transaction has left without a use.
  ///
  /// - Parameter isExact: Looks at every document that may still name a template.
  /// - Returns: How many tags and templates.
  @discardableResult
  func clearUnused(isExact: Bool = false) throws -> (tags: Int, templates: Int) {
    try writeTags()
    var cleared = (tags: 0, templates: 0)
    for tag in leftTags where try clearTag(tag) { cleared.tags += 1 }
    for template in leftTemplates
    where try clearTemplate(template, limit: isExact ? .max : Self.apartLimit) {
      cleared.templates += 1
    }
    leftTags = []
    leftTemplates = []
    return cleared
  }

  /// Looks at the next tags and templates of all hubs.
  /// - Returns: Where to go on; `nil` at the end.
  func sweepUnused(after place: SweepPlace) throws -> SweepPlace? {
    // A tag that another piece of work of this transaction has given has no row there yet.
    try writeTags()
    let numbers = try all(
      "SELECT id FROM \(place.table) WHERE id > ?1 ORDER BY id LIMIT \(Self.sweepLimit)",
      place.number)
    for number in numbers {
      switch place {
      case .tags: _ = try clearTag(number)
      case .templates: _ = try clearTemplate(number, limit: Self.apartLimit)
      }
    }
    guard let last = numbers.last else { return place.next }
    return place.moved(to: last)
  }

  private func clearTag(_ number: Int64) throws -> Bool {
    let key: TagKey
    do {
      let row = try connection.statement(
        """
        SELECT hub, name FROM tag WHERE id = ?1 AND kind = \(TagKey.Kind.plain.rawValue)
          AND NOT EXISTS (SELECT 1 FROM registration_tag WHERE tag = ?1)
        """)
      try row.bind(number, at: 1)
      guard try row.step() else { return false }
      key = .plain(row.text(1), hub: row.integer(0))
    }
    try execute("DELETE FROM tag WHERE id = ?1", number)
    forgetTag(key)
    return true
  }

  private func clearTemplate(_ number: Int64, limit: Int) throws -> Bool {
    let hub: Hub.ID
    do {
      let row = try connection.statement(
        """
        SELECT hub FROM template WHERE id = ?1
          AND NOT EXISTS (SELECT 1 FROM registration WHERE template = ?1)
          AND NOT EXISTS (SELECT 1 FROM removed_registration WHERE template = ?1)
        """)
      try row.bind(number, at: 1)
      guard try row.step() else { return false }
      hub = row.integer(0)
    }
    // The document of an installation keeps templates whose registrations have gone.
    let row = try connection.statement(
      "SELECT document FROM installation WHERE hub = ?1 AND fingerprint = 0")
    try row.bind(hub, at: 1)
    var looked = 0
    while try row.step() {
      looked += 1
      guard looked <= limit else { return false }
      var isNamed = false
      do {
        _ = try InstallationDocument.decode(row.bytes(0), id: "") { used in
          if used == number { isNamed = true }
          return PushTemplate(body: "")
        }
      } catch {
        // One that is damaged may name it, and must not keep others from being written.
        return false
      }
      if isNamed { return false }
    }
    row.reset()
    try execute("DELETE FROM template WHERE id = ?1", number)
    forgetTemplate(of: hub)
    return true
  }
}

/// How far a sweep for what nobody uses has come.
enum SweepPlace: Hashable, Sendable {
  case tags(after: Int64)
  case templates(after: Int64)

  fileprivate var table: String {
    switch self {
    case .tags: "tag"
    case .templates: "template"
    }
  }

  fileprivate var number: Int64 {
    switch self {
    case .tags(let number), .templates(let number): number
    }
  }

  fileprivate var next: SweepPlace? {
    switch self {
    case .tags: .templates(after: 0)
    case .templates: nil
    }
  }

  fileprivate func moved(to number: Int64) -> SweepPlace {
    switch self {
    case .tags: .tags(after: number)
    case .templates: .templates(after: number)
    }
  }
}
