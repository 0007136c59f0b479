import Cryptography
import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Testing

@testable import belfry

@Suite("belfry check")
struct CheckTests {
  private let scratch: Scratch
  private let data: DataDirectory
  private var context = CommandContext(environment: [:], print: { _ in }, note: { _ in })

  /// A hub with a device, and a certificate for APNs that ends in a year.
  init() async throws {
    scratch = try Scratch()
    data = try DataDirectory.make(at: scratch.path + "/data")
    context.room = { _ in 1 << 40 }
    let store = try await data.openStore(masterKey: nil).store
    let policy = AccessPolicy(
      name: "all", rights: .all, primaryKey: "one", secondaryKey: "two", createdAt: .now,
      modifiedAt: .now)
    let hub = try await store.createHub(
      named: "news", registrationTTL: nil, policies: [policy], at: .now)
    for number in 0..<60 {
      try await store.put(SampleDevice("device-\(number)", tags: ["red"]), hub: hub.id, at: .now)
    }
    let archive = try CertificateArchive.make(lifetime: 365 * 86_400, now: Date(), password: "pw")
    try await store.putCredential(
      PushCredential(
        platform: .apns, properties: ["ApnsCertificate": archive, "CertificateKey": "pw"],
        modifiedAt: .now), hub: hub.id)
    try await store.close()
  }

  private func findings(
    _ flags: [String: String] = [:], at now: Date = Date(), room: Int64? = nil
  ) async throws -> [Finding] {
    var flags = flags
    // The least that a machine for tests has.
    flags["connectionLimit"] = "100"
    var context = context
    if let room { context.room = { _ in room } }
    let configuration = try Configuration(file: nil, environment: [:], flags: flags)
    return await Checkup(
      data: data, configuration: configuration, context: context, isThorough: true, now: now
    ).findings()
  }

  private func wrong(
    _ flags: [String: String] = [:], at now: Date = Date(), room: Int64? = nil
  ) async throws -> [String] {
    try await findings(flags, at: now, room: room).filter { $0.level != .ok }.map {
      #expect($0.why != nil && $0.advice != nil)
      return "\($0.level) \($0.code): \($0.text)"
    }
  }

  @Test("of a sound hub finds nothing, and changes nothing")
  func sound() async throws {
    let before = try Data(contentsOf: URL(fileURLWithPath: data.database))
    let findings = try await findings()
    #expect(findings.filter { $0.level != .ok } == [])
    #expect(
      Set(findings.map(\.code)).isSuperset(of: [
        "permissions", "integrity", "audience", "rows", "key", "clock", "disk", "proxy",
        "open-files", "server",
      ]))
    #expect(try Data(contentsOf: URL(fileURLWithPath: data.database)) == before)
  }

  @Test("finds a key that others can read, another key, and one that is not there")
  func keys() async throws {
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: data.masterKeyFile)
    #expect(
      try await wrong() == ["error permissions: \(data.masterKeyFile) has mode 644"])
    try FileManager.default.removeItem(atPath: data.masterKeyFile)
    #expect(try await wrong().contains { $0.hasPrefix("error key: There is no master key") })
    #expect(
      try await findings().contains {
        $0.code == "key" && $0.advice?.contains("into \(data.masterKeyFile)") == true
      })
    _ = try MasterKey.loadOrCreate(file: data.masterKeyFile)
    #expect(
      try await wrong() == ["error key: the master key does not open what is sealed"])
  }

  @Test("opens every sealed value, and names those that do not open")
  func sealedValues() async throws {
    #expect(
      try await findings().contains(.ok("key", "the master key opens all that is sealed, 3 values"))
    )
    let connection = try SQLiteConnection(path: data.database)
    try connection.change("UPDATE access_policy SET secondary_key = primary_key")
    connection.close()
    let found = try await wrong()
    #expect(found.count == 1, "\(found)")
    #expect(
      found[0].hasPrefix(
        "error key: the master key does not open 1 of 3 sealed values: access_policy"),
      "\(found)")
  }

  @Test("finds damaged pages, and a file of a newer version")
  func damage() async throws {
    let pages = try damagePages(
      of: URL(fileURLWithPath: data.database), holding: "device-1", sparing: "CREATE")
    #expect(pages > 0)
    let found = try await wrong()
    #expect(found.contains { $0.hasPrefix("error integrity:") }, "\(found)")
    try Data("no database".utf8).write(to: URL(fileURLWithPath: data.database))
    #expect(try await wrong().contains { $0.hasPrefix("error database:") })
  }

  @Test("names the tables that a file lacks")
  func missingTables() async throws {
    let connection = try SQLiteConnection(path: data.database)
    try connection.execute("DROP TABLE feedback; DROP TABLE tag_part")
    connection.close()
    let found = try await wrong()
    #expect(found == ["error tables: the database lacks the tables feedback, tag_part"], "\(found)")
  }

  @Test("finds a move that is not finished, which neither servers nor backups take")
  func halfMoved() async throws {
    let connection = try SQLiteConnection(path: data.database)
    try connection.execute("CREATE TABLE move_state (source TEXT)")
    connection.close()
    let found = try await wrong()
    #expect(
      found == ["error move: a move into \(data.database) is not finished"], "\(found)")
    await #expect {
      try await Backup(directory: data, context: context).write(
        to: scratch.path + "/backup", password: nil)
    } throws: {
      "\($0)".contains("\(data.database): a move into it is not finished")
    }
    await #expect {
      _ = try await data.openStore(masterKey: nil)
    } throws: { failure in
      "\(failure)".contains("\(data.path): a move into it is not finished")
        && (failure as? CommandFailure)?.exitCode == .usage
    }
  }

  @Test("finds a disk that is full or filling, and a clock that was set back")
  func machine() async throws {
    #expect(try await wrong(room: 5_000_000) == ["error disk: 5.0 MB are free in \(data.path)"])
    let found = try await wrong(at: Date() - 7_200)
    #expect(found.count == 1 && found[0].hasPrefix("error clock:"), "\(found)")
  }

  @Test("warns of certificates before their end, and tells when they have ended")
  func certificates() async throws {
    let soon = try await wrong(at: Date() + 350 * 86_400)
    #expect(
      soon.count == 1
        && soon[0].hasPrefix("warning credential: the apns credential of hub news ends"),
      "\(soon)")
    let over = try await wrong(at: Date() + 366 * 86_400)
    #expect(over.count == 1 && over[0].contains("has ended"), "\(over)")
    // Of a listener: two files, the key of another pair.
    let identity = try CertificateAuthority(commonName: "Test").issue(
      CertificateAuthority.LeafRequest(commonName: "localhost"))
    let certificate = try scratch.file("cert.pem", identity.certificate.pem)
    let key = try scratch.file("key.pem", try P256PrivateKey().pem())
    chmod(key, 0o600)
    let bad = try await wrong(["tlsCertificate": certificate, "tlsKey": key])
    #expect(bad.count == 1 && bad[0].contains("does not belong"), "\(bad)")
  }

  @Test("finds files with secrets that others may read, wherever the settings say that they are")
  func readable() async throws {
    let token = try scratch.file("token.json", #"{"metricsToken": "t", "connectionLimit": 100}"#)
    let key = Data(repeating: 55, count: 32).base64EncodedString()
    let keys = try scratch.file(
      "keys.json",
      """
      {"hubs": [{"name": "news", "policies": [
        {"name": "p", "rights": ["Send"], "primaryKey": "\(key)"}
      ]}], "connectionLimit": 100}
      """)
    let plain = try scratch.file("plain.json", #"{"connectionLimit": 100}"#)
    let named = try scratch.file("named", "")
    func found(_ file: String, _ flags: [String: String] = [:]) async throws -> [String] {
      let check = Checkup(
        data: data, configuration: try Configuration(file: file, environment: [:], flags: flags),
        context: context)
      return await check.findings().filter { $0.code == "permissions" && $0.level != .ok }
        .map(\.text)
    }
    for mode in [0o604, 0o602] as [mode_t] {
      let text = "has mode \(String(mode, radix: 8))"
      for path in [token, keys, plain, named] { chmod(path, mode) }
      #expect(try await found(token) == ["\(token) \(text)"])
      #expect(try await found(keys) == ["\(keys) \(text)"])
      for setting in ["operators", "oidcSecretFile", "tlsKey", "tlsCertificate"] {
        #expect(try await found(plain, [setting: named]) == ["\(named) \(text)"])
      }
    }
    // As /etc/belfry/belfry.json: its group is meant to.
    for path in [token, keys] { chmod(path, 0o640) }
    #expect(try await found(token) + found(keys) == [])
  }

  @Test("finds that the hub was moved away, and then it is neither changed nor backed up")
  func moved() async throws {
    try data.setMoved("to elsewhere")
    #expect(try await wrong() == ["warning moved: the hub here was moved to elsewhere"])
    for words in [["hub", "create", "more"], ["backup", scratch.path + "/backup"]] {
      let run = try await BelfryProcess.run(words + ["--data", data.path])
      #expect(
        run.code == 64 && run.errors.contains("was moved to elsewhere: use it there"), "\(run)")
    }
    let list = try await BelfryProcess.run(["hub", "list", "--data", data.path])
    #expect(list.code == 0 && !list.output.contains("more"), "\(list)")
  }

  @Test("finds proxies that make no sense, are unnamed, or without TLS")
  func proxies() async throws {
    let cases: [([String: String], String)] = [
      (["trustedProxies": "0.0.0.0/0", "publicScheme": "https"], "what follows the slash"),
      (["trustedProxies": "10.0.0.0/99"], "10.0.0.0/99"),
      (["publicScheme": "https"], "names none"),
      (["trustedProxies": "10.0.0.7"], "publicScheme is not https"),
      (["address": "0.0.0.0"], "without TLS"),
    ]
    for (flags, text) in cases {
      let found = try await wrong(flags)
      #expect(found.count == 1 && found[0].contains(text), "\(flags): \(found)")
    }
    #expect(try await wrong(["trustedProxies": "10.0.0.7", "publicScheme": "https"]) == [])
  }

  @Test("finds that acknowledged commits are gone")
  func lostLog() async throws {
    let old = try Data(contentsOf: URL(fileURLWithPath: data.database))
    let store = try await data.openStore(masterKey: nil).store
    _ = try await store.createHub(named: "more", registrationTTL: nil, policies: [], at: .now)
    try await store.close()
    try old.write(to: URL(fileURLWithPath: data.database))
    #expect(try await wrong().contains { $0.hasPrefix("error log: the database is older") })
  }
}

extension CommandLineSuite {
  @Suite("belfry check beside a server")
  struct ServingCheckTests {
    @Test("it reads the database and asks the server; what it finds is the exit code")
    func serving() async throws {
      let scratch = try Scratch()
      let data = scratch.path + "/data"
      let server = try BelfryProcess(["serve", "--data", data, "--port", "0"])
      _ = try await server.note { $0.contains("serves") }
      let words = ["check", "--data", data]
      let variables = ["BELFRY_CONNECTION_LIMIT": "50"]
      let well = try await BelfryProcess.run(words, environment: variables)
      #expect(well.code == 0, "\(well.output) \(well.errors)")
      #expect(
        well.output.contains("ok      server       ready at http://127.0.0.1:"), "\(well.output)")
      chmod(data + "/master.key", 0o640)
      let found = try await BelfryProcess.run(words + ["--json"], environment: variables)
      #expect(found.code == 1 && found.output.hasPrefix(#"{"findings":["#), "\(found)")
      #expect(found.output.contains(#""advice":"chmod 0600 "#), "\(found.output)")
      #expect(try await server.end() == 0)
    }

    @Test("it finds a running `belfry up`, and says what it lacks where nothing is found")
    func places() async throws {
      let scratch = try Scratch()
      let environment = ["BELFRY_HOME": scratch.path, "BELFRY_CONNECTION_LIMIT": "50"]
      func check(_ words: String...) async throws -> (code: Int32, output: String, errors: String) {
        try await BelfryProcess.run(
          ["check"] + words, environment: environment, in: scratch.path)
      }
      let nowhere = try await check()
      #expect(nowhere.code == 64 && nowhere.errors.contains("Name a data directory with --data"))
      let database = try await check("--database", "postgresql:///none")
      #expect(database.code == 64 && database.errors.contains("give --data with"), "\(database)")
      let up = try BelfryProcess(["up", "--json", "--port", "0"], environment: environment)
      _ = try await up.line { $0.hasPrefix("{") }
      let found = try await check()
      #expect(found.errors.contains("from the running `belfry up`"), "\(found)")
      #expect(found.output.contains("ok      server       ready at"), "\(found)")
      #expect(try await up.end() == 0)
      #expect(!(try await check("--help")).output.contains("made if missing"))
    }

    @Test(
      "of a node it asks PostgreSQL",
      .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
    func node() async throws {
      let scratch = try Scratch()
      let data = scratch.path + "/data"
      let database = try PostgresServer.shared().makeDatabase()
      let server = try BelfryProcess(
        ["serve", "--data", data, "--port", "0"], environment: ["BELFRY_DATABASE": database])
      _ = try await server.note { $0.contains("serves") }
      let found = try await BelfryProcess.run(
        ["check", "--data", data], environment: ["BELFRY_CONNECTION_LIMIT": "50"])
      #expect(found.output.contains("the schema and the master key fit; 1 node alive"), "\(found)")
      #expect(found.output.contains("connections are in use"), "\(found.output)")
      #expect(
        found.output.contains("the master key opens all that is sealed, 2 values"),
        "\(found.output)")
      // The server for tests has no standby.
      #expect(
        found.output.contains("synchronous_standby_names is empty")
          || found.output.contains("fsync is off"))
      #expect(found.code == 1)
      #expect(found.output.contains("ok      server"), "durability is said once: \(found.output)")
      #expect(!found.output.contains("the database lacks"), "\(found.output)")
      #expect(try await server.end() == 0)
      let connection = try PostgresConnection(address: database, component: "test")
      try connection.execute("DROP TABLE kept_outcome")
      connection.close()
      let lacking = try await BelfryProcess.run(["check", "--data", data])
      #expect(
        lacking.output.contains("error   tables       the database lacks the table kept_outcome"),
        "\(lacking)")
    }
  }
}
