import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("Lists, counts and erasures from the command line")
  struct ExtensionCommandTests {
    @Test("installations are listed and counted, and a user is erased")
    func story() async throws {
      let (process, up) = try await BelfryProcess.up()
      let client = try up.client()
      for (id, user) in [("a", "ann"), ("b", "bob"), ("c", "bob")] {
        try await client.createOrReplace(
          Installation(
            installationID: id, userID: user, platform: .apns, pushChannel: .handle("AB\(id)1"),
            tags: ["x"]))
      }
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      func run(_ words: [String]) async throws -> String {
        let (code, output, errors) = try await BelfryProcess.run(words + access)
        #expect(code == 0, "\(words): \(errors)")
        return output.trimmingCharacters(in: .newlines)
      }
      let list = try await run(["installation", "list", "--user", "BOB", "--tag", "x"])
      #expect(try await run(["installation", "list", "--search", "bO"]) == list)
      #expect(list.hasSuffix("2 installations in hub demo"), "\(list)")
      #expect(
        try await run(["installation", "list", "--limit", "2"]).contains("raise --limit"))
      #expect(
        try await run(["installation", "list", "--expired", "true", "--json"])
          == #"{"installations":[]}"#)
      let found = try await run(["device", "search", "abB1"])
      #expect(found.hasSuffix("1 installation and 1 registration in hub demo"), "\(found)")
      #expect(
        try await run(["device", "search", "ABB1", "--json"]).contains(#""installationId":"b""#))
      let (nobody, _, word) = try await BelfryProcess.run(["device", "search", "ABD1"] + access)
      #expect(nobody == 1 && word.contains("no device in hub demo has this handle"), "\(word)")
      #expect(try await run(["statistics"]).contains("hub demo from "))
      let hour = try HubStatistics(
        json: Array(try await run(["statistics", "--from", "-30m", "--json"]).utf8))
      #expect([30, 31].contains(hour.points.count) && hour.accepted == 0)
      let count = try await run(["audience", "count", "--tags", "x && !$UserId:{ann}"])
      #expect(count.contains("apns"), "\(count)")
      #expect(count.hasSuffix("2 devices in hub demo; 0 pushes of a template send"), "\(count)")
      #expect(
        try await run(["audience", "count", "--json"])
          == #"{"total":3,"counts":[{"platform":"apns","template":null,"devices":3}]}"#)
      let (refused, _, reason) = try await BelfryProcess.run(["user", "erase", "bob"] + access)
      #expect(refused == 64 && reason.contains("say --yes"), "\(reason)")
      let erased = try await run(["user", "erase", "bob", "--yes", "--json"])
      #expect(
        erased == #"{"installations":2,"schedules":0,"notifications":0,"deviceRecords":0,"#
          + #""tags":0,"templates":0}"#)
      #expect(
        try await BelfryProcess.run(
          ["installation", "list", "--data", up.data, "--platform", "apns"]
        ).1.contains("1 installation in hub demo"))
      #expect(try await process.end() == 0)
    }

    @Test(
      "words that make no sense are 64 and say why",
      arguments: [
        (["audience", "count", "--tags", "(a"], "--tags"),
        (["installation", "list", "--platform", "pigeon"], "'pigeon' is not a platform"),
        (["installation", "list", "--expired", "maybe"], "true or false"),
        (["installation", "list", "--connection", "x", "--data", "y"], "goes without --data"),
        (["user", "erase"], "ID is missing"), (["device", "search"], "HANDLE is missing"),
        (["statistics", "--step", "90"], "multiple of 60"),
        (["statistics", "--from", "noon"], "--from must be a time such as"),
        (["hub", "restore-devices", "--platform", "pigeon"], "'pigeon' is not a platform"),
        (["hub", "restore-devices", "--since", "noon"], "--since must be a time such as"),
      ])
    func nonsense(words: [String], reason: String) async throws {
      let (code, _, errors) = try await BelfryProcess.run(words)
      #expect(code == 64)
      #expect(errors.contains(reason), "\(errors)")
    }
  }
}
