import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  @Suite("A hub that is killed at random moments")
  struct KillTests {
    @Test("delivers everything that it has accepted, and the counts add up")
    func killed() async throws {
      var options = KillTest.Options()
      options.devices = 5_000
      options.kills = 3
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
