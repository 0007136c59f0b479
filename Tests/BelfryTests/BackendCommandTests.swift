import Foundation
import HubTesting
import Testing

@testable import belfry

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
