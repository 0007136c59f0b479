import HubCore
import NotificationHubs
import SQLDatabase

/// Maximum number of different tags and templates of a hub.
struct VocabularyLimits: Hashable, Sendable {
  let tags: Int
  let templates: Int
}

/// The tags and templates of hubs: their limits, and the deletion of unused ones.
///
/// Names of tags and texts of templates are deleted with the last device that has them, because
/// they may reveal who somebody was.
struct VocabularyWriter: WritingSubject {
  let session: WriteSession

  init(_ session: WriteSession) { self.session = session }

  /// Maximum number of installations apart from their registrations that are read for one template;
  /// with more, the template is kept until a sweep or an erasure checks it.
  private static let apartLimit = 100
  /// Maximum number of rows that a sweep checks in one transaction.
  private static let sweepLimit = 1_000

  /// The number of a template, which gets a row if it has none.
  func templateNumber(_ template: PushTemplate, hub: Hub.ID) throws -> Int64 {
    try templates.number(of: template, hub: hub) {
      try addTemplate(to: hub)
      session.state.lastTemplate += 1
      return session.state.lastTemplate
    }
  }

  /// Forgets a tag whose row was deleted.
  func forgetTag(_ key: TagKey) {
    session.tagNumbers[key] = nil
    if key.kind == .plain { session.sizes.tags[key.hub]? -= 1 }
  }

  /// Forgets the cached templates, because the row of one was deleted.
  func forgetTemplate(of hub: Hub.ID) {
    templates.forget()
    session.sizes.templates[hub]? -= 1
  }

  /// Refuses an installation whose new tags or templates are too many for its hub, before anything is
  /// written: later, the whole transaction would be rolled back.
  ///
  /// - Throws: ``StoreError/quota(_:limit:)``.
  func requireRoom(for prepared: PreparedInstallation) throws {
    let templates = prepared.document.templates
    if hasRoom(tags: prepared.tagCount, templates: templates.count, hub: prepared.hub) { return }
    let new = try newNames(of: prepared)
    try requireRoom(tags: new.tags, templates: new.templates, hub: prepared.hub)
  }

  /// As above, for a registration that a client writes.
  func requireRoom(for registration: PreparedRegistration, hub: Hub.ID) throws {
    let new = try newNames(
      registration.tags, registration.template.map { [$0] } ?? [], hub: hub)
    try requireRoom(tags: new.tags, templates: new.templates, hub: hub)
  }

  /// Whether a hub is known to have room for so many more. Nothing is counted to find out.
  func hasRoom(tags: Int, templates: Int, hub: Hub.ID) -> Bool {
    guard let tagCount = session.sizes.tags[hub], let templateCount = session.sizes.templates[hub]
    else { return false }
    return tagCount + tags <= session.vocabulary.tags
      && templateCount + templates <= session.vocabulary.templates
  }

  /// Whether all tags and templates of an installation are there already.
  func bringsNothingNew(_ prepared: PreparedInstallation) throws -> Bool {
    try newNames(of: prepared) == (0, 0)
  }

  private func newNames(
    of prepared: PreparedInstallation
  ) throws -> (tags: Int, templates: Int) {
    try newNames(
      prepared.registrations.lazy.flatMap(\.tags),
      prepared.document.templates.lazy.map(\.template), hub: prepared.hub)
  }

  /// The numbers of different tags and templates that have no row.
  private func newNames(
    _ tags: some Sequence<TagKey>, _ templates: some Sequence<PushTemplate>, hub: Hub.ID
  ) throws -> (tags: Int, templates: Int) {
    var newTags: Set<TagKey> = []
    for tag in tags where tag.kind == .plain && session.tagNumbers[tag] == nil {
      if try !newTags.contains(tag) && connection.tagNumber(tag) == nil { newTags.insert(tag) }
    }
    var newTemplates: Set<PushTemplate> = []
    for template in templates where try !session.templates.hasRow(template, hub: hub) {
      newTemplates.insert(template.withoutTags)
    }
    return (newTags.count, newTemplates.count)
  }

  private func requireRoom(tags: Int, templates: Int, hub: Hub.ID) throws {
    // Without new ones, what is there may be beyond a limit that was lowered.
    guard tags + templates > 0, !session.isRestoring else { return }
    let (tagCount, templateCount) = (try tagCount(of: hub), try templateCount(of: hub))
    if templates > 0, templateCount + templates > session.vocabulary.templates {
      throw StoreError.quota("templates", limit: session.vocabulary.templates)
    }
    if tags > 0, tagCount + tags > session.vocabulary.tags {
      throw StoreError.quota("tags", limit: session.vocabulary.tags)
    }
  }

  /// Counts a new template.
  func addTemplate(to hub: Hub.ID) throws {
    try requireRoom(tags: 0, templates: 1, hub: hub)
    session.sizes.templates[hub]? += 1
  }

  /// Counts a new tag.
  func addTag(to hub: Hub.ID) throws {
    try requireRoom(tags: 1, templates: 0, hub: hub)
    session.sizes.tags[hub]? += 1
  }

  private func tagCount(of hub: Hub.ID) throws -> Int {
    try size(
      &session.sizes.tags[hub], "tag WHERE hub = ?1 AND kind = \(TagKey.Kind.plain.rawValue)", hub)
  }

  private func templateCount(of hub: Hub.ID) throws -> Int {
    try size(&session.sizes.templates[hub], "template WHERE hub = ?1", hub)
  }

  /// - Parameter rows: Table and condition, a text of this file.
  private func size(_ known: inout Int?, _ rows: String, _ hub: Hub.ID) throws -> Int {
    if let known { return known }
    let size = Int(try first("SELECT COUNT(*) FROM " + rows, hub) ?? 0)
    known = size
    return size
  }

  /// Deletes tags and templates that the transaction has left unused.
  ///
  /// - Parameter isExact: Reads every document that may still name a template.
  /// - Returns: Number of deleted tags and templates.
  @discardableResult
  func clearUnused(isExact: Bool = false) throws -> (tags: Int, templates: Int) {
    try TagMemberWriter(session).writeTags()
    var cleared = (tags: 0, templates: 0)
    for tag in session.leftTags where try clearTag(tag) == .plain { cleared.tags += 1 }
    for template in session.leftTemplates
    where try clearTemplate(template, limit: isExact ? .max : Self.apartLimit) {
      cleared.templates += 1
    }
    session.leftTags = []
    session.leftTemplates = []
    return cleared
  }

  /// Checks the next tags and templates of all hubs.
  /// - Returns: The position at which to continue; `nil` at the end.
  func sweepUnused(after place: SweepProgress) throws -> SweepProgress? {
    // A tag from another unit of work in this transaction has no row there yet.
    try TagMemberWriter(session).writeTags()
    let numbers = try connection.numbers(
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

  /// - Returns: The kind of the deleted tag; `nil` when it is kept.
  private func clearTag(_ number: Int64) throws -> TagKey.Kind? {
    guard try !TagMemberWriter(session).isUsed(number) else { return nil }
    let key: TagKey
    do {
      let row = try connection.statement("SELECT hub, kind, name FROM tag WHERE id = ?1")
      try row.bind(number, at: 1)
      // Tags of other kinds occur once in a hub, and reveal nothing about anybody.
      guard try row.step(), let kind = TagKey.Kind(rawValue: row.integer(1)),
        kind == .plain || kind == .namedTemplate
      else { return nil }
      key = TagKey(hub: row.integer(0), kind: kind, name: row.text(2))
    }
    try execute("DELETE FROM tag WHERE id = ?1", number)
    forgetTag(key)
    return key.kind
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
    // The document of an installation keeps templates whose registrations were deleted.
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
        // A damaged document may name it, and must not keep others from being written.
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

/// The progress of a sweep for unused tags and templates.
enum SweepProgress: Hashable, Sendable {
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

  fileprivate var next: SweepProgress? {
    switch self {
    case .tags: .templates(after: 0)
    case .templates: nil
    }
  }

  fileprivate func moved(to number: Int64) -> SweepProgress {
    switch self {
    case .tags: .tags(after: number)
    case .templates: .templates(after: number)
    }
  }
}
