import Cryptography
import Foundation
import HubTesting
import SQLDatabase
import Testing

@testable import belfry

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension CommandLineSuite {
  /// `belfry backend` with what is beside it.
  @Suite struct BackendCommandTests {
    @Test func `commands that only look make no store`() async throws {
      let scratch = try TemporaryDirectory()
      defer { scratch.remove() }
      let store = scratch.path("backend")
      for words in [
        ["backend", "audit"], ["backend", "user", "revoke", "alice"], ["backend", "user", "list"],
        ["backend", "user", "delete", "alice"],
      ] {
        let result = try await BelfryProcess.run(words + ["--store", store])
        #expect(result.code != 0, "\(words)")
        #expect(!FileManager.default.fileExists(atPath: store), "\(words)")
      }
      let audit = try await BelfryProcess.run(["backend", "audit", "--store", store])
      #expect(audit.code == 64)
      #expect(audit.errors.contains("--store"), "\(audit.errors)")
    }

    /// Runs a backend that should not start.
    private func refusal(_ words: [String]) async throws -> (code: Int32, errors: String) {
      let scratch = try TemporaryDirectory()
      defer { scratch.remove() }
      let backend = try BelfryProcess(
        ["backend", "--demo-auth", "--port", "0", "--store", scratch.path("backend")] + words)
      return (try await backend.exitCode(within: .seconds(30)), backend.errors)
    }

    @Test func `a backend for a hub that is not there says so at the start`() async throws {
      let (process, up) = try await BelfryProcess.up()
      for (string, code) in [
        (up.hub.namespaceConnectionString, 1), (up.hub.connectionStrings.full, 64),
      ] as [(String, Int32)] {
        let refused = try await refusal(["--connection", string, "--hub", "nope"])
        #expect(refused.code == code)
        #expect(refused.errors.contains("the hub 'nope'"), "\(refused.errors)")
        let reason = code == 1 ? "does not exist" : "is not there"
        #expect(refused.errors.contains(reason), "\(refused.errors)")
      }
      #expect(try await process.end() == 0)
    }

    @Test func `hub tokens are only signed with a key for Listen alone, and not by default`()
      async throws
    {
      let (process, up) = try await BelfryProcess.up()
      let common = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      let strings = [
        up.hub.namespaceConnectionString: "more than Listen",
        up.hub.connectionStrings.listen + "x": "does not take",
      ]
      for (string, reason) in strings {
        let refused = try await refusal(common + ["--listen-connection", string])
        #expect(refused.code == 64)
        #expect(refused.errors.contains(reason), "\(refused.errors)")
      }
      let scratch = try TemporaryDirectory()
      defer { scratch.remove() }
      let backend = try BelfryProcess(
        ["backend", "--demo-auth", "--port", "0", "--store", scratch.path("backend"), "--json"]
          + common + ["--listen-connection", up.hub.connectionStrings.listen])
      struct Line: Decodable { var url: String }
      let line = try await backend.line { $0.hasPrefix("{") }
      let url = try JSONDecoder().decode(Line.self, from: Data(line.utf8)).url
      for (base, status) in [(url, 200), (up.backend.url, 404)] {
        var request = URLRequest(url: try #require(URL(string: base + "/api/token/hub")))
        request.httpMethod = "POST"
        request.setValue("Basic YWxpY2U6YWxpY2U=", forHTTPHeaderField: "Authorization")
        let (_, response) = try await URLSession.shared.data(for: request)
        #expect((response as? HTTPURLResponse)?.statusCode == status)
      }
      backend.signal(SIGTERM)
      #expect(try await process.end() == 0)
      // With nobody there to ask, the policy's rights are not known.
      let unchecked = try await refusal(
        common + ["--listen-connection", up.hub.connectionStrings.listen])
      #expect(unchecked.code == 69)
      #expect(unchecked.errors.contains("cannot be checked"), "\(unchecked.errors)")
    }

    @Test(
      .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"),
      arguments: [true, false])
    func `a backend with another key than the first is refused and leaves no key`(
      onPostgres: Bool
    ) async throws {
      let scratch = try TemporaryDirectory()
      defer { scratch.remove() }
      let address = onPostgres ? try PostgresServer.shared().makeDatabase() : nil
      let (first, second) = (
        try DataDirectory.make(at: scratch.path("one")),
        try DataDirectory.make(at: onPostgres ? scratch.path("two") : scratch.path("one"))
      )
      _ = try await BackendRuntime.open(first, database: address)
      let (key, other) = (first.path + "/backend.key", second.path + "/backend.key")
      if !onPostgres {
        try FileManager.default.removeItem(atPath: key)
        _ = try MasterKey.loadOrCreate(file: key)
      }
      await #expect {
        _ = try await BackendRuntime.open(second, database: address)
      } throws: {
        "\($0)".contains(onPostgres ? "copy backend.key" : "put back the one")
      }
      guard onPostgres else { return }
      #expect(!FileManager.default.fileExists(atPath: other))
      try FileManager.default.copyItem(atPath: key, toPath: other)
      _ = try await BackendRuntime.open(second, database: address)
    }

    @Test(.enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
    func `a backend in PostgreSQL remembers its database, as the hub does`() async throws {
      let scratch = try TemporaryDirectory()
      defer { scratch.remove() }
      let (process, up) = try await BelfryProcess.up()
      let store = scratch.path("backend")
      let words = [
        "backend", "--demo-auth", "--port", "0", "--store", store, "--connection",
        up.hub.connectionStrings.full, "--hub", up.hub.name,
      ]
      let database = try PostgresServer.shared().makeDatabase()
      let nowhere = database.replacing("dbname=", with: "dbname=no")
      let missing = try await BelfryProcess.run(words + ["--database", nowhere])
      #expect(missing.code == 69 && missing.errors.contains("createdb"), "\(missing)")
      #expect(!FileManager.default.fileExists(atPath: store + "/backend.key"))
      for given in [["--database", database], []] {
        let backend = try BelfryProcess(words + given)
        let line = try await backend.line { $0.hasPrefix("store") }
        #expect(line.contains("data in \(database)"), "\(line)")
        #expect(try await backend.end() == 0)
      }
      let revoked = try await BelfryProcess.run([
        "backend", "user", "revoke", "alice", "--store", store,
      ])
      #expect(revoked.code == 0, "\(revoked)")
      let audit = try await BelfryProcess.run(["backend", "audit", "--store", store])
      #expect(audit.code == 0 && audit.output.contains("revoke"), "\(audit)")
      let note = store + "/database"
      #expect(
        try FileManager.default.attributesOfItem(atPath: note)[.posixPermissions] as? Int == 0o600)
      // One that an earlier version has left.
      try FileManager.default.removeItem(atPath: note)
      for words in [words, ["backend", "audit", "--store", store]] {
        let refused = try await BelfryProcess.run(words)
        #expect(refused.code == 64 && refused.errors.contains("--database URL"), "\(refused)")
      }
      #expect(!FileManager.default.fileExists(atPath: store + "/backend.sqlite"))
      let empty = try PostgresServer.shared().makeDatabase()
      let look = try await BelfryProcess.run([
        "backend", "audit", "--store", store, "--database", empty,
      ])
      #expect(look.code == 64 && look.errors.contains("no backend is in the database"), "\(look)")
      let connection = try PostgresConnection(address: empty, component: "backend")
      #expect(try connection.schemaVersion() == 0)
      connection.close()
      #expect(try await process.end() == 0)
    }

    @Test func `a proxy that is no network is refused before anything starts`() async throws {
      let scratch = try TemporaryDirectory()
      defer { scratch.remove() }
      let result = try await BelfryProcess.run([
        "serve", "--data", scratch.path("data"), "--port", "0", "--trusted-proxies", "10.0.0.0/99",
      ])
      #expect(result.code == 64)
      #expect(result.errors.contains("10.0.0.0/99"), "\(result.errors)")
    }
  }
}
