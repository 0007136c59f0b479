import Cryptography
import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import PushEmulator
import SQLDatabase
import SecurePushBackend
import StoreContract
import Testing
import Wire

@testable import belfry

@Suite("Backups")
struct BackupTests {
  private static let password = "a long password"

  private let scratch: Scratch
  private var context = CommandContext(environment: [:], print: { _ in }, note: { _ in })

  init() throws { scratch = try Scratch() }

  private func path(_ name: String) -> String { scratch.path + "/" + name }
  private func isThere(_ name: String) -> Bool {
    FileManager.default.fileExists(atPath: path(name))
  }

  /// A data directory with a hub, a device and an operator.
  private func makeHub(_ name: String = "data", masterKey: String? = nil) async throws
    -> DataDirectory
  {
    let data = try DataDirectory.make(at: path(name))
    let store = try await data.openStore(masterKey: masterKey).store
    let policy = AccessPolicy(
      name: "all", rights: [.manage], primaryKey: "the key of the policy", secondaryKey: "other",
      createdAt: .now, modifiedAt: .now)
    let hub = try await store.createHub(
      named: "news", registrationTTL: nil, policies: [policy], at: .now)
    try await store.put(SampleDevice("device-1", tags: ["red"]), hub: hub.id, at: .now)
    try await store.close()
    _ = try scratch.file(name + "/operators", "ann:scrypt$…\n")
    return data
  }

  @discardableResult
  private func back(
    up data: DataDirectory, to name: String = "backup", password: String? = nil,
    keys: Bool = true, masterKey: String? = nil
  ) async throws -> BackupHeader {
    var backup = Backup(directory: data, context: context)
    backup.hasKeys = keys
    backup.masterKey = masterKey
    backup.cost = 10
    return try await backup.write(to: path(name), password: password)
  }

  private func restore(_ name: String = "backup", password: String? = nil) -> Restore {
    Restore(
      file: path(name), context: context,
      password: {
        guard let password else { throw UsageError("a password is asked for") }
        return password
      })
  }

  private func refusal(_ work: () throws -> Void) -> String {
    do {
      try work()
      return "nothing was refused"
    } catch {
      return "\(error)"
    }
  }

  private func expectRefusal(
    _ words: String, at location: SourceLocation = #_sourceLocation,
    _ backup: () async throws -> BackupHeader
  ) async {
    do {
      _ = try await backup()
      Issue.record("nothing was refused", sourceLocation: location)
    } catch {
      #expect("\(error)".contains(words), sourceLocation: location)
    }
  }

  @Test(
    "bring back hubs, keys, devices and operators, sealed or not", arguments: [nil, password])
  func roundTrip(password: String?) async throws {
    let data = try await makeHub()
    let header = try await back(up: data, password: password)
    #expect(header.entries.map(\.part) == [.hub, .masterKey, .operators])
    #expect(
      try FileManager.default.attributesOfItem(atPath: path("backup"))[.posixPermissions]
        as? Int == 0o600)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path("backup")))
    #expect((bytes.range(of: Data("device-1".utf8)) == nil) == (password != nil))
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: data.path).contains("backup") == false)

    #expect(try restore(password: password).verify() == header)
    let restored = try restore(password: password).restore(to: path("new"))
    #expect(restored.header == header)
    let new = DataDirectory(path: restored.directory)
    for name in try FileManager.default.contentsOfDirectory(atPath: new.path) {
      let attributes = try FileManager.default.attributesOfItem(atPath: new.path + "/" + name)
      #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
    }
    #expect(
      try Data(contentsOf: URL(fileURLWithPath: new.operators)).starts(with: Data("ann".utf8)))
    let store = try await new.openStore(masterKey: nil).store
    #expect(store.discarded == nil)
    let hub = try #require(try await store.hub(named: "news"))
    #expect(
      try await store.accessPolicies(hub: hub.id).map(\.primaryKey) == ["the key of the policy"])
    #expect(try await store.installation("device-1", hub: hub.id)?.tags == ["red"])
    try await store.close()
  }

  @Test("of an app backend have its messages, its users and its key")
  func backend() async throws {
    let data = try DataDirectory.make(at: path("store"))
    try await BackendRuntime.open(data, database: nil).close()
    _ = try scratch.file("store/users", "alice:scrypt$…\n")
    #expect(try await back(up: data).entries.map(\.part) == [.backend, .backendKey, .users])
    let new = DataDirectory(path: try restore().restore(to: path("new")).directory)
    try await BackendRuntime.openExisting(new, database: nil).close()
  }

  @Test(
    "that are cut short, changed or longer than they were are refused", arguments: [nil, password])
  func damaged(password: String?) async throws {
    try await back(up: try await makeHub(), password: password)
    let whole = try Data(contentsOf: URL(fileURLWithPath: path("backup")))
    func check(_ bytes: Data, _ what: String) throws {
      try bytes.write(to: URL(fileURLWithPath: path("bad")))
      let text = refusal {
        _ = try restore("bad", password: password).restore(to: path("new"))
      }
      #expect(
        ["damaged", "no backup", "newer belfry"].contains { text.contains($0) }, "\(what): \(text)")
      #expect(!isThere("new"), "\(what)")
    }
    for length in [0, 7, 31, 32, 35, 40, 300, whole.count / 2, whole.count - 1] {
      try check(whole.prefix(length), "cut at \(length)")
    }
    for position in [0, 8, 9, 10, 20, 33, 40, 80, 1_000, whole.count / 2, whole.count - 1] {
      // Without a password there is no salt in front, and what stands in its place counts too.
      var bytes = whole
      bytes[position] ^= 0x40
      try check(bytes, "changed at \(position)")
    }
    try check(whole + Data([0]), "longer")
  }

  @Test("sealed in several pieces are refused with a piece missing, moved or cut off")
  func pieces() throws {
    let part = [UInt8](repeating: 7, count: 3 << 20)
    let digest = Hex.encode(Digest.sha256(part))
    let entry = BackupHeader.Entry(part: .hub, size: Int64(part.count), sha256: digest, schema: 1)
    let header = BackupHeader(made: "", belfry: "", entries: [entry])
    let output = try OutputFile(path("big"))
    let writer = try BackupWriter(header, to: output, password: Self.password, cost: 10)
    for piece in 0..<6 { try writer.write(Array(part[piece << 19..<(piece + 1) << 19])) }
    try writer.finish()
    #expect(try restore("big", password: Self.password).verify() == header)
    let whole = try Data(contentsOf: URL(fileURLWithPath: path("big")))
    let (front, piece) = (BackupFile.frontCount, BackupFile.piece + 16)
    let head = Data(whole.prefix(front))
    let first = Data(whole[front..<front + piece])
    let second = Data(whole[front + piece..<front + 2 * piece])
    let rest = Data(whole[(front + 2 * piece)...])
    func check(_ pieces: [Data], _ what: String) throws {
      try Data(pieces.joined()).write(to: URL(fileURLWithPath: path("bad")))
      let text = refusal { _ = try restore("bad", password: Self.password).verify() }
      #expect(text.contains("cut short"), "\(what): \(text)")
    }
    try check([head, first, rest], "missing")
    try check([head, first, second], "cut off")
    try check([head, second, first, rest], "moved")
    try check([head, first, first, rest], "twice")
  }

  @Test("bring back texts that were cleared since, until maintenance clears them again")
  func clearedTexts() async throws {
    let data = try await makeHub()
    let id = NotificationID(rawValue: "n-1")
    func isCleared(in data: DataDirectory, clearing: Bool) async throws -> Bool? {
      let store = try await data.openStore(masterKey: nil).store
      while clearing, try await store.clearTexts(endedBefore: .distantFuture) {}
      let hub = try #require(try await store.hub(named: "news")).id
      let found = try await store.notification(id, hub: hub)?.hasClearedText
      try await store.close()
      return found
    }
    let store = try await data.openStore(masterKey: nil).store
    let hub = try #require(try await store.hub(named: "news")).id
    try await store.accept(
      NotificationRecord(
        id: id, hub: hub, request: NotificationRequest(format: .template, body: [123, 125]),
        state: .enqueued, enqueuedAt: .now))
    var end = Checkpoint(notification: id, hub: hub, at: .now)
    end.state = .completed
    try await store.checkpoint(end)
    try await store.close()
    try await back(up: data)
    #expect(try await isCleared(in: data, clearing: true) == true)
    let new = DataDirectory(path: try restore().restore(to: path("new")).directory)
    #expect(try await isCleared(in: new, clearing: false) == false)
    #expect(try await isCleared(in: new, clearing: true) == true)
  }

  @Test("have their name before it is synced, and a name that cannot be synced is told")
  func syncedName() throws {
    let output = try OutputFile(path("out"))
    var synced: [String] = []
    output.syncNames = { [self] folder in
      #expect(isThere("out") && !isThere("out.part"))
      synced.append(folder)
    }
    try output.write("x")
    try output.finish()
    #expect(synced == [scratch.path])
    try OutputFile.syncNames(in: scratch.path)
    #expect(refusal { try OutputFile.syncNames(in: path("none")) }.contains("No such file"))
  }

  @Test("whose key is replaced while they are made are given up")
  func replacedKey() async throws {
    let data = try await makeHub()
    var replacing = self
    // Room is looked for after the key was read, and before the database is copied.
    replacing.context.room = { _ in
      #expect(throws: Never.self) {
        let ring = try MasterKeyRing(file: data.masterKeyFile)
        try ring.replace(with: [try MasterKey()] + ring.all)
      }
      return 1 << 40
    }
    await expectRefusal("the master key was replaced meanwhile") {
      try await replacing.back(up: data)
    }
    #expect(!isThere("backup") && !isThere("backup.part") && !isThere("data/.belfry-backup"))
    try await back(up: data)
  }

  @Test("of a newer belfry are refused with a sentence, and so is a header that cannot be")
  func newer() throws {
    func write(_ entries: [BackupHeader.Entry]) throws {
      let output = try OutputFile(path("new"))
      try BackupWriter(
        BackupHeader(made: "", belfry: "9.0", entries: entries), to: output, password: nil
      ).finish()
    }
    let digest = String(repeating: "0", count: 64)
    try write([.init(part: .hub, size: 0, sha256: digest, schema: 99)])
    #expect(refusal { _ = try restore("new").verify() }.contains("use a newer belfry"))
    func entry(_ part: BackupPart, _ size: Int64) -> BackupHeader.Entry {
      BackupHeader.Entry(part: part, size: size, sha256: digest)
    }
    let impossible: [[BackupHeader.Entry]] = [
      [], [entry(.masterKey, 0)], [entry(.hub, -1)], [entry(.hub, .max)],
      [entry(.hub, 0), entry(.hub, 0)],
    ]
    for entries in impossible {
      try write(entries)
      #expect(refusal { _ = try restore("new").verify() }.contains("damaged"), "\(entries)")
    }
    var form = BackupFile.front(salt: nil, cost: 10)
    form[8] = 2
    try Data(form).write(to: URL(fileURLWithPath: path("new")))
    #expect(refusal { _ = try restore("new").verify() }.contains("use a newer belfry"))
    #expect(refusal { _ = try restore("missing").verify() }.contains("No such file"))
  }

  @Test("do not open with another password, and nothing is written")
  func wrongPassword() async throws {
    try await back(up: try await makeHub(), password: Self.password)
    let text = refusal { _ = try restore(password: "another one").restore(to: path("new")) }
    #expect(text.contains("the password is not the one"), "\(text)")
    #expect(text.contains("another copy of the file"), "\(text)")
    #expect(!isThere("new"))
  }

  @Test("without keys want the master key, and only the right one opens them")
  func masterKey() async throws {
    let data = try await makeHub()
    let header = try await back(up: data, keys: false)
    #expect(header.entries.map(\.part) == [.hub, .operators])
    var restore = restore()
    #expect(refusal { _ = try restore.restore(to: path("new")) }.contains("--master-key"))
    _ = try await makeHub("other")
    restore.masterKeyFile = path("other/master.key")
    let text = refusal { _ = try restore.restore(to: path("new")) }
    #expect(text.contains("this master key does not open"), "\(text)")
    #expect(!isThere("new"))
    restore.masterKeyFile = data.masterKeyFile
    let new = DataDirectory(path: try restore.restore(to: path("new")).directory)
    try await new.openStore(masterKey: nil).store.close()
  }

  @Test("of a hub whose key comes from outside have none, and want it again")
  func outsideKey() async throws {
    let key = Base64.encode([UInt8](repeating: 3, count: 32))
    let header = try await back(up: try await makeHub(masterKey: key), masterKey: key)
    #expect(header.entry(.masterKey) == nil)
    var restore = restore()
    restore.masterKey = Base64.encode([UInt8](repeating: 4, count: 32))
    #expect(refusal { _ = try restore.restore(to: path("new")) }.contains("does not open"))
    restore.masterKey = key
    let new = DataDirectory(path: try restore.restore(to: path("new")).directory)
    #expect(!FileManager.default.fileExists(atPath: new.masterKeyFile))
    try await new.openStore(masterKey: key).store.close()
  }

  @Test("go into an empty directory, not where a server works or anything is")
  func occupied() async throws {
    let data = try await makeHub()
    try await back(up: data)
    var claim: DirectoryClaim? = try data.claim()
    #expect(
      refusal { _ = try restore().restore(to: data.path) }.contains("a server works in"))
    withExtendedLifetime(claim) {}
    claim = nil
    let before = try FileManager.default.contentsOfDirectory(atPath: data.path).sorted()
    #expect(refusal { _ = try restore().restore(to: data.path) }.contains("is not empty"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: data.path).sorted() == before)
    let file = try scratch.file("file", "x")
    #expect(refusal { _ = try restore().restore(to: file) }.contains("no directory"))
    // A lock that nobody holds and the rest of a killed restore are no contents.
    let empty = try DataDirectory.make(at: path("empty"))
    for name in ["lock", "restore.part"] { _ = try scratch.file("empty/" + name, "") }
    _ = try restore().restore(to: empty.path)
    try await empty.openStore(masterKey: nil).store.close()
    #expect(!isThere("empty/restore.part"))
  }

  @Test("and restores without room say how much is needed, and change nothing")
  func noRoom() async throws {
    let data = try await makeHub()
    try await back(up: data)
    var full = self
    full.context.room = { _ in 1_000 }
    let text = refusal { _ = try full.restore().restore(to: path("new")) }
    #expect(text.contains("make room"), "\(text)")
    #expect(!isThere("new"))
    let empty = try DataDirectory.make(at: path("empty")).path
    #expect(refusal { _ = try full.restore().restore(to: empty) }.contains("make room"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: empty) == [])
    await expectRefusal("make room") { try await full.back(up: data, to: "second") }
    #expect(!isThere("second") && !isThere("second.part") && !isThere("data/.belfry-backup"))
  }

  @Test(
    "of a database say which disk was full, if it is that of the copy",
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
  func fullScratch() async throws {
    let (data, database) = try await makeNode()
    let disk = try FaultyDisk()
    disk.fault = .full
    var backup = backup(of: data, database)
    backup.scratch = try DataDirectory.make(at: path("scratch")).path
    backup.storage.fileSystem = disk.name
    await expectRefusal("the disk of \(path("scratch"))/.belfry-backup is full") {
      try await backup.write(to: path("backup"), password: nil)
    }
    #expect(!isThere("backup") && !isThere("scratch/.belfry-backup"))
  }

  @Test(
    "whose snapshot the database ends say so, as of a database that is away",
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
  func lostSnapshot() async throws {
    let (data, database) = try await makeNode()
    let disk = try FaultyDisk()
    // Its first operation comes when the backup has opened the database.
    disk.cut(at: [1]) {
      let connection = try? PostgresConnection(address: database, component: "test")
      defer { connection?.close() }
      let ended = try? connection?.numbers(
        """
        SELECT CAST(pg_terminate_backend(pid, 60000) AS INT) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'
        """)
      return ended?.count ?? 0
    }
    var backup = backup(of: data, database)
    backup.storage.fileSystem = disk.name
    let failure = await #expect(throws: CommandFailure.self) {
      try await backup.write(to: path("backup"), password: nil)
    }
    #expect(disk.cuts.map(\.note) == [1])
    #expect(failure?.exitCode == .unreachable)
    #expect(
      failure?.description.hasSuffix(
        ": the database ended the backup's snapshot; make the backup again") == true,
      "\(failure as Any)")
    #expect(!isThere("backup"))
  }

  @Test(
    "of a database with more numbers than a file can hold are not to be tried again",
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
  func numbersUsed() async throws {
    let (data, database) = try await makeNode()
    let connection = try PostgresConnection(address: database, component: "test")
    defer { connection.close() }
    _ = try connection.numbers("SELECT setval('registration_number', 5000000000)")
    let failure = await #expect(throws: CommandFailure.self) {
      try await backup(of: data, database).write(to: path("backup"), password: nil)
    }
    #expect(failure?.description.hasPrefix("the database has given out more numbers") == true)
    #expect(failure?.description.contains("`pg_dump`") == true, "\(failure as Any)")
  }

  @Test(
    "of a database in which somebody locks a table name the database",
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
  func lockedTable() async throws {
    let (data, database) = try await makeNode()
    let connection = try PostgresConnection(address: database, component: "test")
    defer { connection.close() }
    // On a busy machine the server would end the transaction before the backup meets it.
    try connection.execute("SET idle_in_transaction_session_timeout = 0")
    try connection.execute("BEGIN; LOCK TABLE installation IN ACCESS EXCLUSIVE MODE")
    await expectRefusal("the database \(database): the database is locked by another process") {
      try await backup(of: data, database).write(to: path("backup"), password: nil)
    }
  }

  /// The directory of a node, and the database with its hub.
  private func makeNode() async throws -> (DataDirectory, String) {
    let data = try DataDirectory.make(at: path("node"))
    let database = try PostgresServer.shared().makeDatabase()
    let store = try await data.openPostgres(database, masterKey: nil, options: .init()).store
    _ = try await store.createHub(named: "news", HubContents(), at: .now)
    try await store.close()
    return (data, database)
  }

  private func backup(of data: DataDirectory, _ database: String) -> Backup {
    var backup = Backup(directory: data, context: context)
    backup.database = database
    backup.cost = 10
    return backup
  }

  @Test("leave what else is in the directory, and no link is followed")
  func foreignFolders() async throws {
    let data = try await makeHub()
    _ = try DataDirectory.make(at: data.path + "/backup")
    _ = try scratch.file("data/backup/older", "kept")
    try await back(up: data, to: "data/backup/new")
    #expect(isThere("data/backup/older") && isThere("data/backup/new"))
    #expect(!isThere("data/.belfry-backup"))

    let victim = try await makeHub("victim")
    try FileManager.default.createSymbolicLink(
      atPath: path("data/.belfry-backup"), withDestinationPath: victim.path)
    await expectRefusal("belongs to somebody else") { try await back(up: data, to: "second") }
    #expect(isThere("victim/master.key") && !isThere("second"))
  }

  @Test("are not copied by way of a directory in which somebody else may rename")
  func sharedScratch() async throws {
    var backup = Backup(directory: try await makeHub(), context: context)
    let shared = try DataDirectory.make(at: path("shared")).path
    backup.scratch = shared
    chmod(shared, 0o777)
    await expectRefusal("other users may write to \(shared): name a directory of your own") {
      try await backup.write(to: path("backup"), password: nil)
    }
    #expect(!isThere("backup") && !isThere("shared/.belfry-backup"))
    // As /tmp: nobody renames there what is another's.
    chmod(shared, 0o1777)
    _ = try await backup.write(to: path("backup"), password: nil)
    #expect(isThere("backup") && !isThere("shared/.belfry-backup"))
  }

  @Test("that are a pipe are refused, and nobody waits for what it brings")
  func pipe() {
    #expect(mkfifo(path("pipe"), 0o600) == 0)
    #expect(refusal { _ = try restore("pipe").verify() }.contains("is no file"))
  }

  @Test("that are not sealed are refused where a password is given")
  func expectedSeal() async throws {
    let data = try await makeHub()
    try await back(up: data)
    var restore = restore(password: Self.password)
    restore.expectsSeal = true
    #expect(refusal { _ = try restore.restore(to: path("new")) }.contains("is not sealed"))
    #expect(!isThere("new"))
  }

  @Test("are not restored into a directory that somebody takes meanwhile")
  func meanwhile() async throws {
    let data = try await makeHub()
    try await back(up: data, password: Self.password)
    var restore = restore(password: Self.password)
    let place = path("new")
    restore.password = {
      _ = try DataDirectory.make(at: place)
      _ = FileManager.default.createFile(atPath: place + "/belfry.sqlite", contents: Data([1]))
      return Self.password
    }
    #expect(refusal { _ = try restore.restore(to: place) }.contains("is not empty"))
    #expect(isThere("new/belfry.sqlite") && !isThere("new/master.key"))
  }

  @Test("are not made of what is damaged, nor with a key that opens nothing, nor two at a time")
  func refused() async throws {
    let data = try await makeHub()
    _ = try DataDirectory.make(at: data.path + "/.belfry-backup")
    let claim = try DirectoryClaim(file: data.path + "/.belfry-backup/lock")
    await expectRefusal("another backup is under way") { try await back(up: data) }
    withExtendedLifetime(claim) {}

    let other = try await makeHub("other")
    try FileManager.default.removeItem(atPath: other.masterKeyFile)
    try FileManager.default.copyItem(atPath: data.masterKeyFile, toPath: other.masterKeyFile)
    await expectRefusal("does not open") { try await back(up: other) }

    let sick = try await makeHub("sick")
    let pages = try damagePages(
      of: URL(fileURLWithPath: sick.database), holding: "device-1", sparing: "CREATE")
    #expect(pages > 0)
    await expectRefusal("sick") { try await back(up: sick) }
    #expect(!isThere("backup"))
    // Whether the file can be written is found before the database is read.
    await expectRefusal("none/backup.part cannot be written") {
      try await back(up: sick, to: "none/backup")
    }
    await expectRefusal("no Belfry has run") {
      try await back(up: DataDirectory(path: path("none")))
    }
  }
}

extension CommandLineSuite {
  @Suite("Backups of a hub that serves")
  struct ServingBackupTests {
    private struct Ready: Decodable { let url: String }
    private static let key = Data(repeating: 55, count: 32).base64EncodedString()

    private func client(_ url: String) throws -> NotificationHubClient {
      NotificationHubClient(
        connectionString: try ConnectionString(
          "Endpoint=\(url)/;SharedAccessKeyName=all;SharedAccessKey=\(Self.key)"), hub: "news")
    }

    private func serve(_ words: [String]) async throws -> (BelfryProcess, NotificationHubClient) {
      let server = try BelfryProcess(["serve", "--json", "--port", "0"] + words)
      let line = try await server.line { $0.hasPrefix("{") }
      return (
        server, try client(try JSONDecoder().decode(Ready.self, from: Data(line.utf8)).url)
      )
    }

    /// Whether the hub is kept in PostgreSQL.
    private static func databases() -> [Bool] {
      PostgresServer.isInstalled ? [false, true] : [false]
    }

    @Test(
      "it is killed, restored elsewhere, and has devices, keys and schedules; a send arrives",
      arguments: databases())
    func killedAndRestored(inPostgreSQL: Bool) async throws {
      let emulator = EmulatorServer(.onFreePorts)
      let addresses = try await emulator.start()
      do {
        let database =
          try inPostgreSQL ? ["--database", PostgresServer.shared().makeDatabase()] : []
        try await killedAndRestored(emulator, addresses, database)
      } catch {
        await emulator.stop()
        throw error
      }
      await emulator.stop()
    }

    private func killedAndRestored(
      _ emulator: EmulatorServer, _ addresses: EmulatorAddresses, _ database: [String]
    ) async throws {
      let scratch = try Scratch()
      let app = try emulator.app()
      let phone = try #require(try emulator.makeDevices(app: app, count: 1).first)
      let keyFile = try scratch.file("AuthKey_\(app.keyID).p8", app.p8)
      let trust = [
        "--trust", try scratch.file("ca.pem", addresses.authorityPEM), "--service-hosts",
        "127.0.0.1",
      ]
      let configuration = try scratch.file(
        "belfry.json",
        """
        { "hubs": [ { "name": "news", "policies": [
            { "name": "all", "rights": ["Manage", "Send", "Listen"], "primaryKey": "\(Self.key)" } ],
            "apns": { "keyFile": "\(keyFile)", "teamId": "\(app.teamID)",
              "bundleId": "\(app.bundleID)", "endpoint": "\(addresses.apnsProduction)",
              "otherEndpoint": "none" } } ] }
        """)
      let old = scratch.path + "/old"
      let (server, client) = try await serve(
        ["--config", configuration, "--data", old] + database + trust)
      try await client.createOrReplace(
        Installation(
          installationID: "phone", platform: .apns, pushChannel: .handle(phone.token), tags: ["a"]))
      let scheduled = try await client.schedule(
        .apple(#"{"aps":{"alert":"later"}}"#), at: Date() + 86_400, to: "a")

      // Writes go on throughout, one after the other.
      @Sendable func write(_ number: Int) async throws {
        try await client.createOrReplace(
          Installation(
            installationID: "w-\(number)", platform: .apns,
            pushChannel: .handle(Hex.encode([UInt8](repeating: UInt8(number & 255), count: 32))),
            tags: ["written"]))
      }
      let before = 20
      for number in 0..<before { try await write(number) }
      let writer = Task {
        var number = before
        while !Task.isCancelled, (try? await write(number)) != nil { number += 1 }
        return number
      }
      let file = scratch.path + "/hub.backup"
      let backup = try await BelfryProcess.run(
        ["backup", file, "--data", old, "--encrypt", "--json"],
        environment: ["BELFRY_BACKUP_PASSWORD": "the password of it"])
      #expect(backup.code == 0, "\(backup.errors)")
      let made = try #require(
        try JSONSerialization.jsonObject(with: Data(backup.output.utf8)) as? [String: Any])
      #expect(made["file"] as? String == file && made["belfry"] as? String == "0.1.0")
      #expect(!FileManager.default.fileExists(atPath: old + "/.belfry-backup"))
      writer.cancel()
      let after = await writer.value + 1
      server.signal(SIGKILL)
      _ = try await server.exitCode()

      let new = scratch.path + "/new"
      let unsaid = try await BelfryProcess.run(["restore", file, "--data", new])
      #expect(unsaid.code == 64 && unsaid.errors.contains("--password-file"), "\(unsaid.errors)")
      let restored = try await BelfryProcess.run([
        "restore", file, "--json", "--data", new, "--password-file",
        try scratch.file("password", "the password of it\n"),
      ])
      #expect(restored.code == 0, "\(restored.errors)")
      let report = try #require(
        try JSONSerialization.jsonObject(with: Data(restored.output.utf8)) as? [String: Any])
      #expect(report["made"] as? String == made["made"] as? String)

      let (again, client2) = try await serve(["--data", new] + trust)
      #expect(try await client2.installation("phone").tags == ["a"])
      // All that was written before one moment, and nothing that came after it.
      var devices: Set<String> = []
      for try await one in client2.installations(InstallationQuery(tag: "written")) {
        devices.insert(one.installationID)
      }
      #expect((before...after).contains(devices.count))
      #expect(devices == Set((0..<devices.count).map { "w-\($0)" }))
      var list: [String] = []
      for try await one in client2.scheduledNotifications() { list.append(one.notificationID) }
      #expect(list == [try #require(scheduled.notificationID)])
      let sent = try await client2.send(.apple(#"{"aps":{"alert":"here"}}"#), to: "a")
      let telemetry = try await client2.finalTelemetry(of: try #require(sent.notificationID))
      #expect(telemetry.count(of: .success) == 1)
      #expect(try await again.end() == 0)
    }

    @Test("the words of backup and restore are checked before anything is read")
    func words() async throws {
      let scratch = try Scratch()
      let node = scratch.path + "/node"
      try FileManager.default.createDirectory(atPath: node, withIntermediateDirectories: false)
      _ = try scratch.file("node/database", "postgresql://belfry@127.0.0.1/belfry\n")
      let file = try scratch.file("file", "x")
      let away = try await BelfryProcess.run(["backup", scratch.path + "/b", "--data", node])
      #expect(
        away.code == 69 && away.errors.contains("the database postgresql://belfry@127.0.0.1"),
        "\(away.errors)")
      let cases: [([String], String)] = [
        (["backup", scratch.path + "/b", "--data", scratch.path], "no Belfry has run"),
        (["backup", file, "--data", node], "say --force"),
        (["backup", scratch.path, "--data", node], "is a directory: name a file in it"),
        (["backup", "", "--data", node], "FILE is missing"),
        (["backup", "b", "--password-file", file], "goes with --encrypt"),
        (["backup", "-", "--json", "--data", scratch.path], "standard output is taken"),
        (["restore", file], "--data is missing"),
        (["restore", file, "--verify"], "no backup of Belfry"),
        (["restore", scratch.path, "--verify"], "no file"),
      ]
      let lost = try await BelfryProcess.run(["backup", "b"], in: scratch.path)
      #expect(lost.code == 64 && lost.errors.contains("Name a data directory with --data DIR"))
      #expect(!lost.errors.contains("--connection"), "\(lost.errors)")
      for (words, text) in cases {
        let (code, _, errors) = try await BelfryProcess.run(words)
        #expect(code == 64 && errors.contains(text), "\(words): \(errors)")
      }
    }
  }
}
