import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("A hub that is killed at random moments")
  struct KillTests {
    @Test("delivers everything that it has accepted, and the counts add up")
    func killed() async throws {
      try await run { options in
        options.devices = 5_000
        options.kills = 3
      }
    }

    @Test(
      "does so as two nodes on PostgreSQL, one of which goes on",
      .enabled(if: PostgresStores.areInstalled, Comment(rawValue: PostgresStores.absence)))
    func nodes() async throws {
      try await run { options in
        options.devices = 1_500
        options.kills = 1
        options.nodes = 2
        options.usesPostgres = true
      }
    }

    private func run(_ configure: (inout KillTest.Options) -> Void) async throws {
      var options = KillTest.Options()
      configure(&options)
      options.seed =
        ProcessInfo.processInfo.environment["BELFRY_SEED"].flatMap { UInt64($0) } ?? 20_261_120
      options.hasErrorsThroughout = false
      options.log = { print("kill test:", $0) }
      let report = try await KillTest(options).run()
      #expect(report.faults == [])
      #expect(report.kills >= options.kills)
      #expect(report.pushes >= options.devices * options.kills)
    }
  }
}
