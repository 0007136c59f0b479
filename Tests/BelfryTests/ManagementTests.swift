import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("Hubs, policies and credentials from the command line")
  struct ManagementTests {
    /// Runs a command that must succeed and returns its output.
    private func run(_ words: String..., data: String) async throws -> String {
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
      #expect(lines.map(\.action) == ["send", "rotateKey", "createHub"])
      #expect(lines.map(\.status) == [201, 200, 200])
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
