import Foundation
import HubCore
import SQLDatabase
import Synchronization

/// An open SQLite file: one thread that writes, a few that read, one that waits for the disk, one
/// that copies the log into the file, connections for reads of single rows, and their shared state.
///
/// Callers' writes are grouped: all that are waiting when the writing thread is free share one
/// transaction and one wait for the disk.
final class StoreEngine: Sendable {
  typealias Options = SQLiteHubStore.Options

  let writer: JobQueue<WriteJob>
  let readers: JobQueue<Job<ReadSession>>
  let rows: RowReaders
  let documents: DocumentQueue
  let confirmations: Confirmations
  private let sync: CommitSync
  private let copier: LogCopier
  private let health: StoreHealth
  let sealing: any SecretSealing
  /// Makes and reads the ids of registrations.
  let coding: RegistrationIDCoding
  /// The beginning of requests' hashes; see ``SQLiteHubStore/Options/release``.
  let requestHash: SipHash
  private let watch: DirectoryWatch
  /// The position of the sweep for unused tags and templates that earlier versions have left, and
  /// the time when the next sweep begins.
  let sweep = Mutex<(place: SweepProgress?, due: ContinuousClock.Instant)>((.tags(after: 0), .now))
  /// Acknowledged commits that were missing when the database was opened; usually `nil`.
  let discarded: DiscardedCommits?
  /// The migration done at opening; usually `nil`.
  let upgrade: StoreUpgrade?

  private init(
    writer: JobQueue<WriteJob>, readers: JobQueue<Job<ReadSession>>, rows: RowReaders,
    documents: DocumentQueue, confirmations: Confirmations, sync: CommitSync, copier: LogCopier,
    health: StoreHealth, sealing: any SecretSealing,
    coding: RegistrationIDCoding, release: String, watch: DirectoryWatch,
    discarded: DiscardedCommits?,
    upgrade: StoreUpgrade?
  ) {
    self.discarded = discarded
    self.upgrade = upgrade
    self.writer = writer
    self.readers = readers
    self.rows = rows
    self.documents = documents
    self.confirmations = confirmations
    self.sync = sync
    self.copier = copier
    self.health = health
    self.sealing = sealing
    self.coding = coding
    var requestHash = coding.contentHash
    for byte in release.utf8 { requestHash.combine(UInt64(byte)) }
    self.requestHash = requestHash
    self.watch = watch
  }

  deinit {
    writer.closeWithoutWaiting()
    readers.closeWithoutWaiting()
    documents.closeWithoutWaiting()
    sync.closeWithoutWaiting()
    copier.closeWithoutWaiting()
  }

  /// Opens the file, creating it when there is none, and migrates its schema.
  ///
  /// - Throws: ``StoreError``. A file that did not exist before is not left behind.
  static func open(
    at path: String, sealing: any SecretSealing, options: Options
  ) async throws -> StoreEngine {
    let identity = Int64.random(in: 1...(.max))
    let writer = JobQueue<WriteJob>(limits: options.limits)
    let readers = JobQueue<Job<ReadSession>>(limits: .none)
    let health = StoreHealth()
    let sync = CommitSync(health: health)
    let copier = LogCopier(pages: options.logPages)
    let watch = DirectoryWatch()
    let opened = Opened()
    let recentKeys = RecentKeys(writer: identity)
    let confirmations = Confirmations(writer: writer)
    let isNew = !FileManager.default.fileExists(atPath: path)
    let hadLog = FileManager.default.fileExists(atPath: path + "-wal")
    let hadMark = FileManager.default.fileExists(atPath: path + "-mark")
    let mark = CommitMarkFile(database: path)
    let found = isNew ? nil : mark.read()
    do {
      try await writer.startThread(
        named: "hub store writer", batch: options.group,
        prepare: { sync.waitForRoom(isOfDevices: $0 == .devices) },
        open: {
          let (session, index, upgrade) = try Self.openWriter(
            path: path, sealing: sealing, options: options, sync: sync, copier: copier,
            health: health, watch: watch, recentKeys: recentKeys, confirmations: confirmations,
            identity: identity)
          let coding = try RegistrationReader.idCoding(in: session.connection)
          let commit = session.state.commitNumber
          opened.values.withLock { $0 = (index, coding, commit, upgrade) }
          return session
        },
        work: { jobs, session in session.perform(jobs, for: options.groupTime) },
        end: { $0.connection.close() })
      try await sync.start {
        let file = try SQLiteLogFile(database: path, fileSystem: options.fileSystem)
        if hadLog {
          // A process that was killed may have left commits that are not on the disk, or whose sync
          // has failed, and callers are answered from what is read. If the log is in use, or there is
          // no room to copy it, it is at least synced.
          do { try Self.rescueLog(path: path, options: options) } catch is SQLError {
            try file.sync()
          }
        }
        return CommitSync.Disk(
          sync: { try file.sync() }, recover: { try Self.rescueLog(path: path, options: options) },
          note: { mark.write($0) })
      }
      try await copier.start { try SQLiteConnection(path: path, options: options.writing) }
      try watch.connect(to: path, fileSystem: options.fileSystem)
      guard let (index, coding, commit, upgrade) = opened.values.withLock({ $0 }) else {
        throw StoreError.closed
      }
      mark.write(CommitMark(number: commit, at: Date().milliseconds))
      var reading = SQLiteConnection.Options()
      reading.isReadOnly = true
      reading.cacheSize = options.readerCache
      reading.lockTimeout = options.lockTimeout
      reading.fileSystem = options.fileSystem
      let readerOptions = reading
      @Sendable func openReader(
        _ reading: SQLiteConnection.Options, mostDocumentBytes: Int = .max
      ) throws -> ReadSession {
        ReadSession(
          connection: try SQLiteConnection(path: path, options: reading), index: index,
          recentKeys: recentKeys, confirmations: confirmations, sealing: sealing, options: options,
          mostDocumentBytes: mostDocumentBytes)
      }
      for number in 1...max(1, options.readers) {
        try await readers.startThread(
          named: "hub store reader \(number)", batch: 1, isTimed: true,
          open: { try openReader(readerOptions) },
          work: { jobs, session in for job in jobs { session.perform(job, health: health) } },
          end: { $0.connection.close() })
      }
      // Callers' own threads wait for no lock, and a disk that hangs holds up few of them.
      reading.lockTimeout = 0
      let rows = try RowReaders(count: max(1, options.readers / 2), health: health) {
        try openReader(reading, mostDocumentBytes: RowReaders.mostBytes)
      }
      return StoreEngine(
        writer: writer, readers: readers, rows: rows,
        documents: try await .documents(limits: options.limits), confirmations: confirmations,
        sync: sync, copier: copier, health: health, sealing: sealing, coding: coding,
        release: options.release,
        watch: watch,
        discarded: found.flatMap { DiscardedCommits($0, found: commit) }, upgrade: upgrade)
    } catch {
      if !hadMark { try? FileManager.default.removeItem(atPath: path + "-mark") }
      await readers.close()
      await copier.close()
      await writer.close()
      await sync.close()
      watch.close()
      throw StoreError.orRefusal(error)
    }
  }

  /// Carries the results of the writing thread's start to the task that opens the store.
  private final class Opened: Sendable {
    let values = Mutex<(AudienceIndex, RegistrationIDCoding, commit: Int64, StoreUpgrade?)?>(nil)
  }

  private static func openWriter(
    path: String, sealing: any SecretSealing, options: Options, sync: CommitSync,
    copier: LogCopier, health: StoreHealth, watch: DirectoryWatch, recentKeys: RecentKeys,
    confirmations: Confirmations, identity: Int64
  ) throws -> (WriteSession, AudienceIndex, StoreUpgrade?) {
    let isNew = !FileManager.default.fileExists(atPath: path)
    do {
      let connection = try SQLiteConnection(path: path, options: options.writing)
      let version = try connection.schemaVersion()
      guard options.mayMigrate || version == 0 || version >= options.steps.count else {
        throw StoreError.cannotOpen(
          "it is of an older version (\(version), this belfry has \(options.steps.count)), and a "
            + "server is working with it; update and restart the server first")
      }
      if version <= options.steps.count { try Schema.refuseUnreleased(connection) }
      if !options.takesMove { try MoveTable(connection).refuseUnfinishedMove() }
      let upgrade = try StoreUpgrade.prepare(connection, path: path, options: options)
      try connection.migrate(with: options.steps)
      try Schema.complete(connection, mayChange: options.mayMigrate)
      upgrade?.removeOlderCopies()
      try checkCanary(connection, sealing: sealing)
      if let damage = StoreHealth.quickCheck(connection) { health.readFailed(damage) }
      let state = try StoreState.read(from: connection)
      let index = AudienceIndex(
        budget: options.audienceBytes, writer: identity, commit: state.commitNumber)
      let session = try WriteSession(
        connection: connection, sealing: sealing, sync: sync, copier: copier, health: health,
        index: index, recentKeys: recentKeys, confirmations: confirmations, watch: watch,
        writer: identity,
        tagLogLimit: options.tagLogLimit, keyLogLimit: options.keyLogLimit,
        keyPortion: options.keyPortion,
        vocabulary: VocabularyLimits(
          tags: options.tagsPerHub, templates: options.templatesPerHub))
      return (session, index, upgrade)
    } catch {
      if isNew {
        for suffix in ["", "-wal", "-shm"] {
          try? FileManager.default.removeItem(atPath: path + suffix)
        }
      }
      throw error
    }
  }

  /// Recovers from a failed sync. It is then unknown which part of the log is on the disk, and
  /// another sync may report success for pages that the system has dropped. So the log is copied
  /// into the file, which is written, and synced, again.
  private static func rescueLog(path: String, options: Options) throws {
    let connection = try SQLiteConnection(path: path, options: options.writing)
    defer { connection.close() }
    let (pages, copied) = try connection.copyLog()
    guard pages > 0, pages == copied else {
      throw SQLError(kind: .locked, code: 0, message: "the log is in use")
    }
  }

  /// Opens a sealed word, which shows at once whether the secrets in the file open under this
  /// master key.
  private static func checkCanary(
    _ connection: any SQLConnection, sealing: any SecretSealing
  ) throws {
    try connection.writing {
      let stored: [UInt8]?
      do {
        let row = try connection.statement("SELECT canary FROM store_state")
        stored = try row.step() ? row.optionalBytes(0) : nil
      }
      if let stored {
        _ = try Canary.key(stored, sealing)
      } else {
        let row = try connection.statement("UPDATE store_state SET canary = ?1")
        try row.bind(try Canary.make(sealing), at: 1)
        try row.run()
      }
    }
  }

  // MARK: Work

  func directoryVersion() throws -> Int { try watch.version() }

  var statistics: StoreStatistics {
    var statistics = sync.statistics
    statistics.add(writer.counts + readers.counts + documents.counts)
    return statistics
  }

  func condition() -> StoreCondition {
    do {
      _ = try watch.version()
    } catch {
      return (error as? StoreError)?.condition
        ?? .unavailable(reason: "the database cannot be read")
    }
    if health.wantsProbe() {
      // Nobody waits for it: a locked database would delay every check. The next check knows the
      // result.
      _ = writer.add(Probe())
    }
    return health.condition
  }

  /// A write that shows whether the disk works again.
  private final class Probe: WriteJob, @unchecked Sendable {  // adds no state
    override func run(_ session: WriteSession) throws {
      try session.connection.run("UPDATE store_state SET commit_number = commit_number")
    }
  }

  func close() async {
    await documents.close()
    await readers.close()
    rows.close()
    await copier.close()
    watch.close()
    if confirmations.areWaiting { confirmations.writeTimes() }
    // The last connection to close copies the log into the file and removes it.
    await writer.close()
    await sync.close()
  }
}

extension SQLiteHubStore.Options {
  /// Options of writing connections: other threads sync the log and copy it.
  fileprivate var writing: SQLiteConnection.Options {
    var writing = SQLiteConnection.Options()
    writing.cacheSize = writerCache
    writing.lockTimeout = lockTimeout
    writing.maximumPages = maximumPages
    writing.applicationID = Schema.applicationID
    writing.syncsCommits = false
    writing.logPages = nil
    writing.fileSystem = fileSystem
    return writing
  }
}
