import HubCore
import NotificationHubs
import SQLDatabase

/// The working state of a reading connection. One thread at a time uses it.
final class ReadSession {
  let connection: any SQLConnection
  let index: AudienceIndex
  let sealing: any SecretSealing
  /// See ``SQLiteHubStore/Options/stretch``.
  let stretch: Int
  /// See ``SQLiteHubStore/Options/countedNames``.
  let countedNames: Int
  let templates: TemplateTable
  /// See ``deviceKeys()``.
  let keys: DeviceKeys
  let confirmations: Confirmations
  /// The maximum size of a document in bytes that may be decoded here.
  let mostDocumentBytes: Int

  init(
    connection: any SQLConnection, index: AudienceIndex, recentKeys: RecentKeys,
    confirmations: Confirmations, sealing: any SecretSealing, options: SQLiteHubStore.Options,
    mostDocumentBytes: Int = .max
  ) {
    self.mostDocumentBytes = mostDocumentBytes
    self.confirmations = confirmations
    stretch = options.stretch
    countedNames = options.countedNames
    keys = DeviceKeys(connection: connection, recent: recentKeys)
    self.connection = connection
    self.index = index
    self.sealing = sealing
    templates = TemplateTable(connection: connection)
  }

  /// The keys as this connection sees them.
  /// - Throws: ``RowReaders/TakesLong`` if they have to be read again, which may not be done here.
  func deviceKeys() throws -> DeviceKeys {
    let state = try StoreState.read(from: connection)
    if mostDocumentBytes < .max, keys.recent.isBehind(state) { throw RowReaders.TakesLong() }
    try keys.follow(state)
    return keys
  }
}

/// The writing thread's working state: its connection, and its knowledge of the database.
///
/// Only that thread uses it.
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
  /// The state at the beginning of the transaction, with the numbers allocated since.
  var state: StoreState
  /// Changes of the current transaction to the members of tags.
  var changes: [TagChange] = []
  /// Number of ``changes`` that are written.
  var writtenChanges = 0
  /// The log in the database; forgotten after a rollback and when another process has written.
  var knownLog: TagLog?
  /// The part of the log that is being merged; forgotten with it.
  var tagMerge: TagMerge?
  /// Whether the log was full when it was read: something has probably interrupted a merge.
  var hasInterruptedTagMerge = false
  let tagLogLimit: Int
  /// See ``deviceKeys()``.
  let keys: DeviceKeys
  let keyLogLimit: Int
  let keyPortion: Int
  let confirmations: Confirmations
  /// Whether the transaction has changed members of tags beyond ``changes``.
  var hasDroppedTags = false
  /// Whether the transaction has changed hubs, policies or credentials.
  var hasChangedDirectory = false
  /// Known rows; forgotten after a rollback and when another process has written.
  var tagNumbers: [TagKey: Int64] = [:]
  /// Tags and templates that a registration has lost in the transaction.
  var leftTags: Set<Int64> = []
  var leftTemplates: Set<Int64> = []
  /// Counts made by the transaction so far.
  var tally = StatisticTally()
  let vocabulary: VocabularyLimits
  /// Whether devices are being restored, which keep what they had, whatever the limits are.
  var isRestoring = false
  /// Number of plain tags and templates of hubs, as far as known; and the same at the last commit,
  /// because counting again after each refusal would cost too much.
  var sizes = Vocabulary()
  private var committedSizes = Vocabulary()
  private var committedState: StoreState

  struct Vocabulary {
    var tags: [Hub.ID: Int] = [:]
    var templates: [Hub.ID: Int] = [:]
  }
  var hubs: Set<Hub.ID> = []
  let templates: TemplateTable

  init(
    connection: SQLiteConnection, sealing: any SecretSealing, sync: CommitSync,
    copier: LogCopier, health: StoreHealth, index: AudienceIndex,
    recentKeys: RecentKeys, confirmations: Confirmations, watch: DirectoryWatch, writer: Int64,
    tagLogLimit: Int, keyLogLimit: Int, keyPortion: Int, vocabulary: VocabularyLimits
  ) throws {
    self.tagLogLimit = tagLogLimit
    self.keyLogLimit = keyLogLimit
    self.keyPortion = keyPortion
    self.confirmations = confirmations
    keys = DeviceKeys(connection: connection, recent: recentKeys)
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
    committedState = state
    templates = TemplateTable(connection: connection)
  }

  /// The keys with those that the transaction has added.
  func deviceKeys() throws -> DeviceKeys {
    if !keys.isKnown {
      keys.recent.load(try keys.readLog(), commit: state.commitNumber)
      keys.isKnown = true
      keys.isMergeOverdue = keys.recent.changes >= 2 * keyLogLimit
    }
    return keys
  }

  // MARK: Transactions

  /// Begins a transaction; checks whether another process has written since the last.
  func begin() throws {
    try connection.run(connection.dialect.beginWriting)
    do {
      let found = try StoreState.read(from: connection)
      if found != state {
        forget()
        sizes = Vocabulary()
        committedSizes = Vocabulary()
      }
      state = found
      committedState = found
    } catch {
      rollBack()
      throw error
    }
  }

  /// Commits, and updates the bitmaps.
  func commit(hasWritten: Bool) throws {
    guard hasWritten else {
      try connection.run("COMMIT")
      return
    }
    try VocabularyWriter(self).clearUnused()
    try TagMemberWriter(self).mergeTagsIfDue()
    try DeviceKeyWriter(self).writeKeys()
    try StatisticsWriter(self).writeStatistics()
    state.commitNumber += 1
    state.writer = writer
    try state.write(to: connection)
    try connection.run("COMMIT")
    if hasDroppedTags { index.removeAll() }
    index.apply(changes, commit: state.commitNumber)
    DeviceKeyWriter(self).keysCommitted()
    if hasChangedDirectory { watch.invalidate() }
    forgetChanges()
    hasDroppedTags = false
    hasChangedDirectory = false
    committedSizes = sizes
  }

  /// Rolls the transaction back and forgets what it had found out.
  func rollBack() {
    connection.rollBack()
    forgetChanges()
    keys.rolledBack()
    hasDroppedTags = false
    hasChangedDirectory = false
    forget()
    state = committedState
    sizes = committedSizes
  }

  /// The number under which the transaction will be committed.
  var revision: Int64 { state.commitNumber + 1 }

  private func forgetChanges() {
    tally = StatisticTally()
    leftTags = []
    leftTemplates = []
    changes.removeAll(keepingCapacity: true)
    writtenChanges = 0
  }

  /// Forgets what is known of rows.
  func forget() {
    tagNumbers = [:]
    knownLog = nil
    tagMerge = nil
    keys.forget()
    hubs = []
    templates.forget()
  }
}

extension ReadSession {
  func perform(_ job: Job<ReadSession>, health: StoreHealth) {
    do { try job.run(self) } catch {
      health.readFailed(error)
      return job.fail(StoreError.orRefusal(error))
    }
    job.finish()
  }
}
