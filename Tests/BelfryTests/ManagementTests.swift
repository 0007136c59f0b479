import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("Hubs, policies and credentials from the command line")
  struct ManagementTests {
    /// Runs a command that must succeed and returns its output.
    private func run(_ words: String..., data: String) async throws -> String {
      try await run(words, data: data)
    }

    private func run(_ words: [String], data: String) async throws -> String {
      let (code, output, errors) = try await BelfryProcess.run(words + ["--data", data])
      #expect(code == 0, "\(words): \(errors)")
      return output
    }

    @Test("a running server notices hubs, policies and rotated keys at once")
    func noticed() async throws {
      let scratch = try Scratch()
      let server = try BelfryProcess(["serve", "--data", scratch.path, "--port", "0"])
      _ = try await server.note { $0.contains("serves http://") }
      _ = try await run("hub", "create", "news", data: scratch.path)
      _ = try await run(
        "policy", "create", "phones", "--rights", "Listen", data: scratch.path)
      let text = try await run(
        "sas", "--connection-string", "--policy", "phones", data: scratch.path)
      let client = NotificationHubClient(
        connectionString: try ConnectionString(text), hub: "news", retry: .none)
      let installation = Installation(
        installationID: "i", platform: .apns, pushChannel: .handle("AB12"), tags: ["a"])
      try await client.createOrReplace(installation)
      #expect(try await client.installation("i").tags == ["a"])
      await #expect(throws: NotificationHubError.self) {
        try await client.broadcast(.template(["a": "b"]))
      }
      let list = try await run("installation", "list", data: scratch.path)
      #expect(list.contains("1 installation in hub news"))

      _ = try await run("policy", "rotate", "phones", "--key", "primary", data: scratch.path)
      try await withLimit(.seconds(30), "the old key to stop working") {
        while (try? await client.installation("i")) != nil {
          try await Task.sleep(for: .milliseconds(1))
        }
      }
      #expect(try await run("policy", "list", data: scratch.path).contains("3 policies"))
      #expect(
        try await run("hub", "list", "--json", data: scratch.path).contains(#""name":"news""#))
      #expect(try await server.end() == 0, "\(server.errors)")
    }

    @Test("what is done on the data directory and over HTTP stands in one activity log")
    func activity() async throws {
      let scratch = try Scratch()
      _ = try await run("hub", "create", "news", data: scratch.path)
      _ = try await run("policy", "rotate", "DefaultFullSharedAccessSignature", data: scratch.path)
      let again = try await BelfryProcess.run(["hub", "create", "news", "--data", scratch.path])
      #expect(again.0 == 1)
      let server = try BelfryProcess(["serve", "--data", scratch.path, "--port", "0"])
      _ = try await server.note { $0.contains("serves http://") }
      _ = try await run("send", "--broadcast", "--template", "message=hi", data: scratch.path)
      let log = try await run("activity", "--json", data: scratch.path)
      let lines = try ActivityList.decode(Array(log.utf8))
      #expect(lines.map(\.action) == ["send", "createHub", "rotateKey", "createHub"])
      #expect(lines.map(\.status) == [201, 409, 200, 201])
      #expect(lines.first?.actor == "policy/DefaultFullSharedAccessSignature")
      #expect(lines.first?.address == "127.0.0.1")
      #expect(lines.last?.actor == "command-line/\(NSUserName())")
      #expect(lines.allSatisfy { $0.hub == "news" })
      let text = try await run(
        "sas", "--connection-string", "--policy", "RootManageSharedAccessKey", data: scratch.path)
      let (code, output, _) = try await BelfryProcess.run([
        "activity", "--action", "send", "--connection", text,
      ])
      #expect(code == 0)
      #expect(output.contains("1 line"))
      let abort = try await BelfryProcess.run([
        "notification", "abort", try #require(lines.first?.object), "--data", scratch.path,
      ])
      #expect(abort.0 == 1)
      #expect(abort.2.contains("has ended already"))
      #expect(try await server.end() == 0, "\(server.errors)")
    }

    @Test("a configuration file makes its hubs with their keys, again and again the same")
    func configured() async throws {
      let scratch = try Scratch()
      let key = Data(repeating: 3, count: 32).base64EncodedString()
      let file = try scratch.file(
        "belfry.json",
        """
        { // a hub with a key that clients hold already
          "data": "data", "port": 0,
          "hubs": [ { "name": "Shop", "registrationTTL": 86400, "policies": [
            { "name": "backend", "rights": ["Send", "Listen"], "primaryKey": "\(key)" } ] } ] }
        """)
      for _ in 1...2 {
        let server = try BelfryProcess(["serve", "--config", file])
        _ = try await server.note { $0.contains("hubs: Shop") }
        #expect(try await server.end() == 0)
        let shown = try await run(
          "policy", "show", "backend", "--json", data: scratch.path + "/data")
        #expect(shown.contains(key))
      }
    }

    @Test("a hub is changed, disabled and shown as it is")
    func updated() async throws {
      let scratch = try Scratch()
      _ = try await run("hub", "create", "news", "--ttl", "86400", data: scratch.path)
      let first = try await run(
        "hub", "update", "news", "--disable", "--metadata", "ours", data: scratch.path)
      #expect(first.contains("disabled"))
      #expect(first.contains("86400 s"))
      #expect(first.contains("metadata      ours"))
      _ = try await run(
        "hub", "update", "news", "--ttl", "never", "--enable", "--metadata", "",
        data: scratch.path)
      let shown = try await run("hub", "show", "news", "--json", data: scratch.path)
      #expect(shown.contains(#""disabled":false"#))
      #expect(!shown.contains("registrationTTL"))
      #expect(!shown.contains("userMetadata"))
      for words in [
        ["hub", "update", "news"], ["hub", "update", "news", "--enable", "--disable"],
        ["hub", "update", "news", "--ttl", "60"],
      ] {
        let (code, _, errors) = try await BelfryProcess.run(words + ["--data", scratch.path])
        #expect(code == 64)
        #expect(errors.contains("belfry hub update --help"))
      }
    }

    @Test("hubs are managed over HTTP as on a data directory, by who has the right key")
    func overHTTP() async throws {
      let scratch = try Scratch()
      _ = try await run("hub", "create", "news", data: scratch.path)
      let server = try BelfryProcess(["serve", "--data", scratch.path, "--port", "0"])
      _ = try await server.note { $0.contains("serves http://") }
      func connection(_ words: String...) async throws -> String {
        try await run(["sas", "--connection-string", "--hub", "news"] + words, data: scratch.path)
          .trimmingCharacters(in: .newlines)
      }
      func ask(_ words: String..., key: String) async throws -> (Int32, String, String) {
        try await BelfryProcess.run(words + ["--connection", key])
      }
      let root = try await connection("--policy", "RootManageSharedAccessKey")
      let full = try await connection()
      let listen = try await connection("--policy", "DefaultListenSharedAccessSignature")

      let made = try await ask("hub", "create", "shop", "--ttl", "90d", key: root)
      #expect(made.0 == 0 && made.1 == "created hub shop\n", "\(made)")
      let again = try await ask("hub", "create", "shop", key: root)
      #expect(again.0 == 1 && again.2.contains("a hub named 'shop' exists already"), "\(again)")
      for words in [["hub", "list"], ["hub", "list", "--json"], ["hub", "show", "shop"]] {
        let here = try await run(words, data: scratch.path)
        let there = try await BelfryProcess.run(words + ["--connection", root])
        #expect(there.0 == 0 && there.1 == here, "\(words): \(there)")
      }
      #expect(try await ask("hub", "show", "news", key: full).0 == 0)
      for refused in [
        try await ask("hub", "list", key: full), try await ask("hub", "create", "x", key: full),
        try await ask("hub", "show", "news", key: listen),
        try await ask("hub", "delete", "shop", "--yes", key: full),
        try await ask("credential", "list", "--hub", "news", key: listen),
      ] {
        #expect(refused.0 == 1 && refused.2.contains("the hub refused"), "\(refused)")
      }
      for words in [["hub", "show", "a b"], ["hub", "delete", "a b", "--yes"]] {
        let spaced = try await BelfryProcess.run(words + ["--connection", full])
        #expect(
          spaced.code == 64 && spaced.errors.contains("'a b' is no name of a hub"), "\(spaced)")
      }
      let unknown = try await ask("hub", "show", "sho", key: root)
      #expect(unknown.0 == 1 && unknown.2.contains("there are: news, shop"), "\(unknown)")
      let none = try await ask("credential", "probe", "apns", "--hub", "news", key: full)
      #expect(none.0 == 1 && none.2.contains("hub news has no credential for apns"), "\(none)")
      let setting = try await ask(
        "credential", "probe", "apns", "--hub", "news", "--service-hosts", "x", key: full)
      #expect(setting.0 == 64 && setting.2.contains("--service-hosts is for a data directory"))
      let policy = try await ask("policy", "list", key: root)
      #expect(policy.0 == 64 && policy.2.contains("unknown option '--connection'"), "\(policy)")
      let gone = try await ask("hub", "delete", "shop", "--yes", key: root)
      #expect(gone.0 == 0 && gone.1 == "deleted hub shop\n", "\(gone)")
      let log = try await run(
        "activity", "--actor", "policy/RootManageSharedAccessKey", data: scratch.path)
      #expect(log.contains("3 lines"), "\(log)")
      #expect(try await server.end() == 0, "\(server.errors)")
    }

    @Test("devices are written and read on a data directory that no server serves")
    func unserved() async throws {
      let scratch = try Scratch()
      _ = try await run("hub", "create", "news", data: scratch.path)
      for id in ["a", "b", "c"] {
        _ = try await run(
          "installation", "put", "--id", id, "--handle", "AB\(id)1", "--tags", "x", "--user", "ann",
          data: scratch.path)
      }
      _ = try await run("installation", "patch", "a", "--add-tag", "y", data: scratch.path)
      _ = try await run("installation", "delete", "c", data: scratch.path)
      #expect(try await run("installation", "get", "a", data: scratch.path).contains("x, y"))
      let first = try await run("installation", "list", "--limit", "1", data: scratch.path)
      let place = try #require(first.split(separator: " ").last).trimmingCharacters(in: .newlines)
      #expect(first.contains("raise --limit, or go on with --after \(place)"), "\(first)")
      let rest = try await run("installation", "list", "--after", place, data: scratch.path)
      #expect(rest.contains("b ") && rest.hasSuffix("1 installation in hub news\n"), "\(rest)")
      #expect(
        try await run("audience", "count", "--tags", "y", data: scratch.path)
          .contains("1 device in hub news"))
      _ = try await run("registration", "put", "--handle", "CD01", data: scratch.path)
      let file = scratch.path + "/devices.txt"
      #expect(
        try await run("export", file, data: scratch.path)
          == "exported 2 installations and 1 registrations to \(file)\n")
      _ = try await run("hub", "create", "copy", data: scratch.path)
      #expect(
        try await run("import", file, "--hub", "copy", "--new-ids", data: scratch.path)
          == "imported 3 lines, 0 failed\n  3 apns\n")
      _ = try await run("hub", "delete", "copy", "--yes", data: scratch.path)
      #expect(
        try await run("registration", "list", data: scratch.path)
          .contains("3 registrations in hub news"))
      #expect(
        try await run("user", "erase", "ann", "--yes", data: scratch.path)
          .contains("installations       2"))
      let missing = try await BelfryProcess.run(
        ["installation", "get", "a", "--data", scratch.path])
      #expect(
        missing.0 == 1 && missing.2 == "belfry: Installation not found\n", "\(missing)")
      let sent = try await BelfryProcess.run([
        "send", "--broadcast", "--template", "a=b", "--data", scratch.path,
      ])
      #expect(sent.0 == 69 && sent.2.contains("no server runs on \(scratch.path)"), "\(sent)")
      // As over HTTP, what devices write has no line.
      let log = try await run("activity", "--json", data: scratch.path)
      let lines = try ActivityList.decode(Array(log.utf8))
      #expect(lines.map(\.action) == ["eraseUser", "deleteHub", "createHub", "createHub"])
      #expect(lines.allSatisfy { $0.actor == "command-line/\(NSUserName())" })
      #expect(lines.allSatisfy { $0.via == .commandLine })
    }

    @Test("a disabled hub can be looked at, and its devices are not written")
    func disabled() async throws {
      let scratch = try Scratch()
      _ = try await run("hub", "create", "news", data: scratch.path)
      _ = try await run("hub", "update", "news", "--disable", data: scratch.path)
      for words in [
        ["installation", "list"], ["credential", "list"], ["activity", "--hub", "news"],
        ["audience", "count"],
      ] {
        _ = try await run(words, data: scratch.path)
      }
      let put = try await BelfryProcess.run([
        "installation", "put", "--handle", "AB", "--data", scratch.path,
      ])
      #expect(
        put.0 == 1 && put.2.contains("The notification hub 'news' is disabled."), "\(put)")
    }

    @Test("a credential is checked before it is kept")
    func badCredential() async throws {
      let scratch = try Scratch()
      _ = try await run("hub", "create", "h", data: scratch.path)
      let key = try scratch.file("AuthKey_ABC123DEFG.p8", "not a key")
      let (code, _, errors) = try await BelfryProcess.run([
        "credential", "set", "apns", "--key", key, "--team-id", "DEF123GHIJ", "--bundle-id",
        "com.example.app", "--data", scratch.path,
      ])
      #expect(code == 1)
      #expect(errors.contains("--key is not a signing key"), "\(errors)")
      #expect(!errors.contains("not a key"))
      let list = try await run("credential", "list", data: scratch.path)
      #expect(list.contains("0 credentials"))
    }
  }
}
