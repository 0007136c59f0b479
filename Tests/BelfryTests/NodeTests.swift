import Cryptography
import Foundation
import HubTesting
import NotificationHubs
import SQLDatabase
import Testing

@testable import belfry

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("The address of a database")
struct DatabaseAddressTests {
  @Test(
    "is shown without its password",
    arguments: [
      ("postgresql://belfry:geheim@db/belfry", "postgresql://belfry:…@db/belfry"),
      ("postgres://belfry:ge@he:im@db1,db2/x", "postgres://belfry:…@db1,db2/x"),
      ("postgresql://db/x?password=geheim&user=a", "postgresql://db/x?…"),
      ("postgresql://a:b@db/x?sslpassword=geheim", "postgresql://a:…@db/x?…"),
      ("host=db PASSWORD='ge heim'", "(hidden)"),
      ("postgresql://belfry@db:5432/x?sslmode=require", nil),
      ("host=/run/postgresql dbname=x", nil),
    ] as [(String, String?)])
  func shown(_ text: String, _ wanted: String?) {
    #expect(DatabaseAddress.shown(text) == wanted ?? text)
    #expect(DatabaseAddress.hasPassword(text) == (wanted != nil))
  }

  @Test("that is none is refused by its text alone")
  func faults() {
    for text in ["db.example.com", "postgresql://db:port:x/%zz", "host=db nonsense=1"] {
      #expect(DatabaseAddress.fault(text) != nil)
    }
    #expect(DatabaseAddress.fault("postgresql:///belfry") == nil)
  }
}

extension CommandLineSuite {
  @Suite(
    "Nodes of one hub, on one PostgreSQL",
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
  struct NodeTests {
    @Test("two share hub, keys and devices, and one goes on when the other ends or dies")
    func two() async throws {
      let database = try PostgresServer.shared().makeDatabase()
      let (one, first) = try await BelfryProcess.up(["--database", database])
      let (two, second) = try await BelfryProcess.up([
        "--database", database, "--emulator", first.emulator.control,
      ])
      #expect(first.hub.url != second.hub.url)
      let control = Control(base: first.emulator.control)
      let phone = try await control.phones(1)[0]
      try await first.client().createOrReplace(
        Installation(
          installationID: "i-1", platform: .apns, pushChannel: .handle(phone.token), tags: ["a"]))
      func send(_ up: UpLine) async throws -> (Int32, String, String) {
        try await BelfryProcess.run([
          "send", "--apns", #"{"aps":{"alert":"hi"}}"#, "--tags", "a", "--wait", "--connection",
          up.hub.connectionStrings.full, "--hub", up.hub.name,
        ])
      }
      let (code, _, errors) = try await send(second)
      #expect(code == 0, "\(errors)")
      func list() async throws -> String {
        let (code, output, errors) = try await BelfryProcess.run([
          "node", "list", "--data", first.data,
        ])
        #expect(code == 0, "\(errors)")
        return output
      }
      // It would turn the hub's credentials to its own emulator.
      let (alone, _, refusal) = try await BelfryProcess.run([
        "up", "--port", "0", "--database", database,
      ])
      #expect(alone == 64 && refusal.contains("give --emulator "), "\(refusal)")
      #expect(!one.errors.contains("fsync") && !two.errors.contains("synchronous"))
      let check = try await BelfryProcess.run(["check", "--data", first.data])
      #expect(check.output.contains("ok      permissions  only its owner"), "\(check.output)")
      // A long code and its sentence are apart.
      #expect(check.output.contains("database-not-synchronous "), "\(check.output)")
      let nodes = try await list()
      #expect(nodes.split(separator: "\n").count == 2 && nodes.contains(second.hub.httpsUrl))
      #expect(try await two.end() == 0)
      #expect(try await list().split(separator: "\n").count == 1, "it has signed off")
      let adopt = ["database", "adopt", "--data", first.data]
      let refused = try await BelfryProcess.run(adopt)
      #expect(
        refused.code != 0 && refused.errors.contains("nodes work on the database"), "\(refused)")
      // Another takes its place, and dies without a word.
      let (three, _) = try await BelfryProcess.up([
        "--database", database, "--emulator", first.emulator.control,
      ])
      three.signal(SIGKILL)
      _ = try await three.exitCode()
      let (last, _, complaint) = try await send(first)
      #expect(last == 0, "\(complaint)")
      #expect(try await control.delivered(to: phone.id).count == 2)
      #expect(try await one.end() == 0)
    }

    @Test("the health says so when the database is away, and again when it is back")
    func away() async throws {
      let server = try PostgresServer()
      defer { server.stop() }
      let (process, up) = try await BelfryProcess.up(["--database", try server.makeDatabase()])
      func ready() async throws -> (status: Int, text: String) {
        let (data, response) = try await URLSession.shared.data(
          from: #require(URL(string: up.hub.url + "/health/ready")))
        return (
          (response as? HTTPURLResponse)?.statusCode ?? 0, String(decoding: data, as: UTF8.self)
        )
      }
      let before = try await ready()
      #expect(before.status == 200 && before.text.contains("database-not-synchronous"))
      try server.pause()
      let limit = ContinuousClock.now + .seconds(60)
      var away = before
      while away.status == 200, ContinuousClock.now < limit { away = try await ready() }
      #expect(away.status == 503 && away.text.contains("store-unavailable"))
      try server.resume()
      while away.status != 200, ContinuousClock.now < limit + .seconds(60) {
        away = try await ready()
      }
      #expect(away.status == 200)
      #expect(try await process.end() == 0)
    }

    @Test("what cannot work is said in a sentence before a socket opens")
    func badInput() async throws {
      let scratch = try Scratch()
      let database = try PostgresServer.shared().makeDatabase()
      let connection = try PostgresConnection(address: database, component: "test")
      try connection.execute("CREATE ROLE poor LOGIN")
      try connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
      connection.close()
      let cases: [(address: String, code: Int32, words: [String])] = [
        ("db.example.com", 64, ["database", "postgresql://"]),
        ("postgresql://a:geheim@127.0.0.1/x", 64, ["the environment", "PGPASSFILE"]),
        (database.replacing("dbname=", with: "dbname=no"), 69, ["createdb"]),
        (database.replacing("user=belfry", with: "user=nobody"), 69, ["check the user"]),
        (database.replacing("user=belfry", with: "user=poor"), 69, ["GRANT CREATE"]),
        ("postgresql://belfry@127.0.0.1:1/belfry", 69, ["check host and port"]),
      ]
      for (number, item) in cases.enumerated() {
        let (code, output, errors) = try await BelfryProcess.run([
          "serve", "--port", "0", "--data", "\(scratch.path)/data-\(number)", "--database",
          item.address,
        ])
        #expect(code == item.code, "\(item.address): \(errors)")
        #expect(item.words.allSatisfy { errors.contains($0) }, "\(item.address): \(errors)")
        #expect(!(output + errors).contains("serves http") && !errors.contains("geheim"))
        #expect(
          !FileManager.default.fileExists(atPath: "\(scratch.path)/data-\(number)/master.key"))
      }
      let hosts = try await complaint(
        about: "postgresql://belfry@127.0.0.1:1,127.0.0.1:2/belfry", in: scratch)
      #expect(hosts.contains("port 1 failed") && hosts.contains("port 2 failed"), "\(hosts)")
      let away = "postgresql://belfry@127.0.0.1:1/belfry"
      for words in [
        ["serve", "--port", "0", "--data", scratch.path + "/slots", "--database", away],
        ["move", "--from", scratch.path + "/slots", "--to", away],
      ] {
        let slots = try await BelfryProcess.run(words + ["--database-slots", "3"])
        #expect(slots.code == 64 && slots.errors.contains("a power of two"), "\(slots)")
      }
    }

    /// How many tables of Belfry are in a database.
    private func tables(_ address: String) throws -> [Int64] {
      let connection = try PostgresConnection(address: address, component: "test")
      defer { connection.close() }
      return try connection.numbers("SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'")
    }

    @Test("commands that look make neither tables nor a key nor a directory, and say what to do")
    func looking() async throws {
      let scratch = try Scratch()
      let database = try PostgresServer.shared().makeDatabase()
      let data = try DataDirectory.make(at: scratch.path + "/data")
      _ = try scratch.file("data/database", database)
      for words in [
        ["node", "list", "--database", database], ["hub", "list", "--data", data.path],
        ["policy", "list", "--hub", "news", "--data", data.path],
        ["backup", scratch.path + "/hub.backup", "--data", data.path],
      ] {
        let found = try await BelfryProcess.run(words, in: scratch.path)
        #expect(found.code == 64 && found.errors.contains("no hub is in the database"), "\(found)")
        #expect(found.errors.contains("another in BELFRY_DATABASE"), "\(found)")
      }
      #expect(try tables(database) == [0])
      #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == ["data"])
      #expect(try FileManager.default.contentsOfDirectory(atPath: data.path) == ["database"])
      let made = try await BelfryProcess.run(["hub", "create", "news", "--data", data.path])
      #expect(made.code == 0, "\(made)")
      let adopted = try await BelfryProcess.run(["database", "adopt", "--data", data.path])
      #expect(adopted.output.hasPrefix("0 registrations had transaction numbers"), "\(adopted)")
      // Somebody elsewhere who has no key looks, too.
      let keyless = try await BelfryProcess.run(
        ["node", "list", "--database", database], in: scratch.path)
      #expect(keyless.code == 64 && keyless.errors.contains("copy master.key"), "\(keyless)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.path) == ["data"])
    }

    @Test(
      "a directory is of one node, whose log names the database; other slots than it has are told")
    func oneDirectory() async throws {
      let scratch = try Scratch()
      let words = ["serve", "--port", "0", "--data", scratch.path + "/data"]
      let database = try PostgresServer.shared().makeDatabase()
      let node = try BelfryProcess(words + ["--database", database])
      let line = try await node.note { $0.contains("serves http") }
      #expect(line.contains("from \(database), with \(scratch.path)/data"), "\(line)")
      let second = try await BelfryProcess.run(words)
      #expect(second.code == 69 && second.errors.contains("another Belfry serves"), "\(second)")
      #expect(try await node.end() == 0)
      #expect(!node.errors.contains("databaseSlots"))
      let other = try BelfryProcess(words + ["--database-slots", "32"])
      _ = try await other.note { $0.contains("serves http") }
      #expect(other.errors.contains("databaseSlots is 32, and this database was made with 16"))
      #expect(try await other.end() == 0)
    }

    @Test("`belfry check` warns of more nodes than a broadcast has parts")
    func tooFewSlots() async throws {
      let scratch = try Scratch()
      let database = try PostgresServer.shared().makeDatabase()
      let (one, two) = (scratch.path + "/one", scratch.path + "/two")
      func serve(_ data: String) async throws -> BelfryProcess {
        let node = try BelfryProcess([
          "serve", "--port", "0", "--data", data, "--database", database, "--database-slots", "1",
        ])
        _ = try await node.note { $0.contains("serves http") }
        return node
      }
      let first = try await serve(one)
      let alone = try await BelfryProcess.run(["check", "--data", one])
      #expect(!alone.output.contains("databaseSlots"), "\(alone.output)")
      try FileManager.default.createDirectory(
        atPath: two, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try FileManager.default.copyItem(atPath: one + "/master.key", toPath: two + "/master.key")
      let second = try await serve(two)
      let found = try await BelfryProcess.run(["check", "--data", one])
      #expect(
        found.output.contains("2 nodes live, and a broadcast is cut into 1 part (databaseSlots)"),
        "\(found.output)")
      #expect(try await second.end() == 0)
      #expect(try await first.end() == 0)
    }

    @Test("a database that a move has half filled is refused with one sentence")
    func halfMoved() async throws {
      let scratch = try Scratch()
      let database = try PostgresServer.shared().makeDatabase()
      let words = ["hub", "create", "news", "--data", scratch.path + "/data"]
      let made = try await BelfryProcess.run(words, environment: ["BELFRY_DATABASE": database])
      #expect(made.code == 0, "\(made)")
      let connection = try PostgresConnection(address: database, component: "test")
      try connection.execute("CREATE TABLE move_state (source TEXT)")
      connection.close()
      let refused = try await BelfryProcess.run(["serve", "--data", scratch.path + "/data"])
      #expect(
        refused.code == 64 && refused.errors.contains("a move into it is not finished"),
        "\(refused)")
    }

    /// Ends with what `serve` says of a database that it cannot work with.
    private func complaint(
      about database: String, environment: [String: String] = [:], in scratch: Scratch
    ) async throws -> String {
      let (code, output, errors) = try await BelfryProcess.run(
        [
          "serve", "--port", "0", "--data", "\(scratch.path)/\(UUID().uuidString)", "--database",
          database,
        ], environment: environment)
      #expect(code == 69, "\(errors)")
      #expect(!(output + errors).contains("serves http"))
      return errors
    }

    @Test(
      "a password that is wrong or missing is reported, with where it belongs, without being shown")
    func password() async throws {
      let scratch = try Scratch()
      let server = try PostgresServer()
      defer { server.stop() }
      let address = try server.makeDatabase()
      let connection = try PostgresConnection(address: address, component: "test")
      try connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
      connection.close()
      try server.wantPassword(of: "guarded")
      let guarded = address.replacing("user=belfry", with: "user=guarded")
      for environment in [[:], ["PGPASSWORD": "geheim"]] {
        let errors = try await complaint(about: guarded, environment: environment, in: scratch)
        #expect(errors.contains("check the user and the password"), "\(errors)")
        #expect(errors.contains("PGPASSFILE") && !errors.contains("geheim"), "\(errors)")
      }
    }

    @Test("a standby is not taken for a primary, and of several hosts the one that writes is found")
    func standby() async throws {
      let scratch = try Scratch()
      let primary = try PostgresServer()
      defer { primary.stop() }
      let database = try primary.makeDatabase()
      let standby = try PostgresServer(standbyOf: primary)
      defer { standby.stop() }
      let name = try #require(database.split(separator: "=").last)
      let errors = try await complaint(about: standby.address(String(name)), in: scratch)
      #expect(errors.contains("only a standby was found; name the primary"), "\(errors)")
      func host(_ server: PostgresServer) -> String {
        String(server.address().split(separator: "'")[1])
      }
      let (process, _) = try await BelfryProcess.up([
        "--database", "host='\(host(standby)),\(host(primary))' user=belfry dbname=\(name)",
      ])
      #expect(try await process.end() == 0)
    }

    @Test("a server that is too old is told apart from one that is not there")
    func oldServer() async throws {
      let scratch = try Scratch()
      let old = try OldPostgres(version: "14.9 (Debian 14.9-1)")
      defer { old.stop() }
      let errors = try await complaint(about: old.address, in: scratch)
      #expect(
        errors.contains("PostgreSQL 14.9") && errors.contains("15 or newer: update the server"),
        "\(errors)")
    }

    @Test("a schema of a newer version is left as it is, and one of another user is reported")
    func foreignSchemas() async throws {
      let scratch = try Scratch()
      let database = try await PostgresStores.makeDatabase()
      let connection = try PostgresConnection(address: database, component: "hub")
      defer { connection.close() }
      let version = try connection.schemaVersion()
      #expect(version > 0)
      try connection.execute("UPDATE schema_version SET version = 9000")
      let newer = try await complaint(about: database, in: scratch)
      #expect(newer.contains("schema version 9000") && newer.contains("newer belfry"), "\(newer)")
      try connection.execute("UPDATE schema_version SET version = \(version)")
      try connection.execute("CREATE ROLE stranger LOGIN")
      let foreign = try await complaint(
        about: database.replacing("user=belfry", with: "user=stranger"), in: scratch)
      #expect(
        foreign.contains("permission denied for table")
          && foreign.contains("made by another user"), "\(foreign)")
    }

    @Test("a node without the master key of the others is told where it is to be copied from")
    func masterKey() async throws {
      let scratch = try Scratch()
      let database = try PostgresServer.shared().makeDatabase()
      func create(_ hub: String, _ data: String) async throws -> (Int32, String, String) {
        try await BelfryProcess.run(
          ["hub", "create", hub, "--data", "\(scratch.path)/\(data)"],
          environment: ["BELFRY_DATABASE": database])
      }
      let (first, _, fault) = try await create("one", "a")
      #expect(first == 0, "\(fault)")
      let (second, _, errors) = try await create("two", "b")
      #expect(second == 64 && errors.contains("master.key"), "\(errors)")
      let path = scratch.path + "/b/master.key"
      #expect(!FileManager.default.fileExists(atPath: path), "a key that opens nothing is left")
      _ = try MasterKey.loadOrCreate(file: path)
      let (wrong, _, sentence) = try await create("two", "b")
      #expect(
        wrong == 64
          && sentence.contains("this is not the key of this database: copy master.key of another"),
        "\(sentence)")
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.copyItem(atPath: scratch.path + "/a/master.key", toPath: path)
      let (third, _, complaint) = try await create("two", "b")
      #expect(third == 0, "\(complaint)")
      // The directory knows its database from then on.
      let (code, list, _) = try await BelfryProcess.run([
        "hub", "list", "--data", scratch.path + "/a",
      ])
      #expect(code == 0 && list.contains("one") && list.contains("two"))
      let (config, shown, _) = try await BelfryProcess.run(
        ["config"], environment: ["BELFRY_DATABASE": "postgresql://a:geheim@db/x"])
      #expect(config == 0 && shown.contains("postgresql://a:…@db/x") && !shown.contains("geheim"))
    }
  }
}
