import HubCore
import NotificationHubs
import SQLDatabase

/// What the writing thread has at hand: its connection, and what it knows of the database.
///
/// Only that thread touches it.
final class WriteSession {
  let connection: SQLiteConnection
  let sealing: any SecretSealing
  /// Resumes callers once what they wrote is on the disk.
  let sync: CommitSync
  let copier: LogCopier
  let health: StoreHealth
  private let index: AudienceIndex
  private let watch: DirectoryWatch
  /// The number under which this process commits.
  private let writer: Int64
  /// As in the database at the beginning of the transaction, with the numbers given out since.
  var state: StoreState
  /// What the transaction under way has done to `registration_tag`.
  var changes: [TagChange] = []
  /// How many of ``changes`` are written.
  var writtenChanges = 0
  /// The transaction has done more to it than ``changes`` says.
  var hasDroppedTags = false
  /// The transaction has changed hubs, policies or credentials.
  private var hasChangedDirectory = false
  /// Known rows; forgotten after a rollback and when another process has written.
  private var tagNumbers: [TagKey: Int64] = [:]
  /// Tags and templates that a registration has lost in the transaction.
  var leftTags: Set<Int64> = []
  var leftTemplates: Set<Int64> = []
  private let vocabulary: VocabularyLimits
  /// Devices that come back keep what they had, whatever the limits are.
  var isRestoring = false
  /// How many plain tags and templates hubs have, as far as that was asked; and the same at the last
  /// commit, since counting again after each refusal would cost too much.
  private var sizes = Vocabulary()
  private var committedSizes = Vocabulary()

  private struct Vocabulary {
    var tags: [Hub.ID: Int] = [:]
    var templates: [Hub.ID: Int] = [:]
  }
  private var hubs: Set<Hub.ID> = []
  let templates: TemplateTable

  /// How many tags' numbers are remembered.
  private static let tagLimit = 50_000

  init(
    connection: SQLiteConnection, sealing: any SecretSealing, sync: CommitSync,
    copier: LogCopier, health: StoreHealth, index: AudienceIndex, watch: DirectoryWatch,
    writer: Int64, vocabulary: VocabularyLimits
  ) throws {
    self.vocabulary = vocabulary
    self.connection = connection
    self.sealing = sealing
    self.sync = sync
    self.copier = copier
    self.health = health
    self.index = index
    self.watch = watch
    self.writer = writer
    state = try StoreState.read(from: connection)
    templates = TemplateTable(connection: connection)
  }

  // MARK: Transactions

  /// Starts a transaction; looks whether another process has written since the last.
  func begin() throws {
    try connection.run(connection.dialect.beginWriting)
    do {
      let found = try StoreState.read(from: connection)
      if found != state {
        forget()
        sizes = Vocabulary()
      }
      state = found
    } catch {
      rollBack()
      throw error
    }
  }

  /// Commits; the bitmaps follow.
  func commit(hasWritten: Bool) throws {
    guard hasWritten else {
      try connection.run("COMMIT")
      return
    }
    try clearUnused()
    state.commitNumber += 1
    state.writer = writer
    try state.write(to: connection)
    try connection.run("COMMIT")
    if hasDroppedTags { index.removeAll() }
    index.apply(changes, commit: state.commitNumber)
    if hasChangedDirectory { watch.look() }
    forgetChanges()
    hasDroppedTags = false
    hasChangedDirectory = false
    committedSizes = sizes
  }

  /// Undoes the transaction and forgets what it had found out.
  func rollBack() {
    connection.rollBack()
    forgetChanges()
    hasDroppedTags = false
    hasChangedDirectory = false
    forget()
    sizes = committedSizes
  }

  /// The number under which the transaction will be committed.
  var revision: Int64 { state.commitNumber + 1 }

  private func forgetChanges() {
    leftTags = []
    leftTemplates = []
    changes.removeAll(keepingCapacity: true)
    writtenChanges = 0
  }

  /// Forgets what is known of rows.
  func forget() {
    tagNumbers = [:]
    hubs = []
    templates.forget()
  }

  // MARK: Hubs

  /// Says that hubs, policies or credentials change with this transaction.
  func changeDirectory() {
    state.directoryVersion += 1
    hasChangedDirectory = true
  }

  /// - Throws: ``StoreError/noHub`` when there is none of that number.
  func requireHub(_ hub: Hub.ID) throws {
    guard try hasHub(hub) else { throw StoreError.noHub }
  }

  func hasHub(_ hub: Hub.ID) throws -> Bool {
    if hubs.contains(hub) { return true }
    guard try connection.hasHub(hub) else { return false }
    hubs.insert(hub)
    return true
  }

  // MARK: Tags

  /// The number of a tag, which gets a row when it has none.
  func tagNumber(_ key: TagKey) throws -> Int64 {
    if let known = tagNumbers[key] { return known }
    let number = try connection.tagNumber(key) ?? insertTag(key)
    if tagNumbers.count >= Self.tagLimit { tagNumbers = [:] }
    tagNumbers[key] = number
    return number
  }

  /// Forgets a tag whose row has gone.
  func forgetTag(_ key: TagKey) {
    tagNumbers[key] = nil
    if let size = sizes.tags[key.hub] { sizes.tags[key.hub] = size - 1 }
  }

  /// Forgets the templates that are known, since the row of one has gone.
  func forgetTemplate(of hub: Hub.ID) {
    templates.forget()
    if let size = sizes.templates[hub] { sizes.templates[hub] = size - 1 }
  }

  /// - Throws: ``StoreError/quota(_:limit:)`` when the hub has all the templates that it may have.
  func makeRoomForTemplate(hub: Hub.ID) throws {
    let size = try sizes.templates[hub] ?? count("template WHERE hub = ?1", hub)
    guard size < vocabulary.templates || isRestoring else {
      throw StoreError.quota("templates", limit: vocabulary.templates)
    }
    sizes.templates[hub] = size + 1
  }

  private func makeRoomForTag(hub: Hub.ID) throws {
    let size =
      try sizes.tags[hub]
      ?? count("tag WHERE hub = ?1 AND kind = \(TagKey.Kind.plain.rawValue)", hub)
    guard size < vocabulary.tags || isRestoring else {
      throw StoreError.quota("tags", limit: vocabulary.tags)
    }
    sizes.tags[hub] = size + 1
  }

  /// - Parameter rows: Table and condition, a text of this file.
  private func count(_ rows: String, _ hub: Hub.ID) throws -> Int {
    let row = try connection.statement("SELECT COUNT(*) FROM " + rows)
    try row.bind(hub, at: 1)
    return try row.step() ? Int(row.integer(0)) : 0
  }

  private func insertTag(_ key: TagKey) throws -> Int64 {
    if key.kind == .plain { try makeRoomForTag(hub: key.hub) }
    state.lastTag += 1
    let row = try connection.statement(
      "INSERT INTO tag (id, hub, kind, name) VALUES (?1, ?2, ?3, ?4)")
    try row.bind(state.lastTag, at: 1)
    try row.bind(key.hub, at: 2)
    try row.bind(key.kind.rawValue, at: 3)
    try row.bind(key.name, at: 4)
    try row.run()
    return state.lastTag
  }

  /// Gives a tag to a registration or takes it away; either may be so already. The row is written
  /// at the end of the transaction, by ``writeTags()``.
  func setTag(_ tag: Int64, of registration: RegistrationID, isMember: Bool) {
    guard let bit = UInt32(exactly: registration) else { return }
    changes.append(TagChange(tag: tag, registration: bit, isMember: isMember))
  }
}

extension SQLConnection {
  /// A hub that is being deleted is gone, whatever rows it still has.
  func hasHub(_ hub: Hub.ID) throws -> Bool {
    let row = try statement("SELECT 1 FROM hub WHERE id = ?1")
    try row.bind(hub, at: 1)
    return try row.step()
  }

  /// The number of a tag that has a row.
  func tagNumber(_ key: TagKey) throws -> Int64? {
    let row = try statement("SELECT id FROM tag WHERE hub = ?1 AND kind = ?2 AND name = ?3")
    try row.bind(key.hub, at: 1)
    try row.bind(key.kind.rawValue, at: 2)
    try row.bind(key.name, at: 3)
    return try row.step() ? row.integer(0) : nil
  }
}
