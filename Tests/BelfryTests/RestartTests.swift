import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("Starting again")
  struct RestartTests {
    @Test("two belfry up run side by side, and what had no --data leaves nothing behind")
    func sideBySide() async throws {
      let (first, one) = try await BelfryProcess.up()
      let (second, two) = try await BelfryProcess.up()
      #expect(one.hub.url != two.hub.url)
      #expect(one.data != two.data)
      let key = { (line: UpLine) throws in
        try ConnectionString(line.hub.connectionStrings.full).key
      }
      #expect(try key(one) != key(two))
      #expect(try await first.end() == 0)
      #expect(try await second.end() == 0)
      #expect(!FileManager.default.fileExists(atPath: one.data))
      #expect(!FileManager.default.fileExists(atPath: two.data))
    }

    @Test("the same --data brings the same hub, keys, devices and phones back")
    func sameData() async throws {
      let scratch = try Scratch()
      let (first, one) = try await BelfryProcess.up(["--data", scratch.path])
      let phone = try #require(
        try await Control(base: one.emulator.control).phones(1).first)
      let installation = Installation(
        installationID: "kept", platform: .apns, pushChannel: .handle(phone.token), tags: ["a"])
      try await one.client().createOrReplace(installation)
      #expect(try await first.end() == 0)

      let (second, two) = try await BelfryProcess.up(["--data", scratch.path])
      #expect(two.hub.name == one.hub.name)
      #expect(
        try ConnectionString(two.hub.connectionStrings.full).key
          == ConnectionString(one.hub.connectionStrings.full).key)
      #expect(
        try ConnectionString(two.hub.namespaceConnectionString).key
          == ConnectionString(one.hub.namespaceConnectionString).key)
      #expect(try await two.client().installation("kept").tags == ["a"])
      try await two.client().send(.apple(#"{"aps":{"alert":"still there"}}"#), to: "a")
      let (code, output, _) = try await BelfryProcess.run([
        "send", "--apns", #"{"aps":{"alert":"again"}}"#, "--tags", "a", "--wait", "--data",
        scratch.path,
      ])
      #expect(code == 0)
      #expect(output.contains("Success"))
      let control = Control(base: two.emulator.control)
      #expect(try await control.delivered(to: phone.id).count == 2)
      #expect(try await second.end() == 0)
    }

    @Test("a setting that keeps no texts clears those that were kept before the restart")
    func textsOff() async throws {
      let scratch = try Scratch()
      let data = scratch.path + "/data"
      let place = ["--data", data, "--hub", "news"]
      func belfry(_ words: [String]) async throws -> String {
        let run = try await BelfryProcess.run(words)
        #expect(run.code == 0, "\(words): \(run.errors)")
        return run.output
      }
      func list() async throws -> String {
        try await belfry(["notification", "list", "--json"] + place)
      }
      func serving(
        _ environment: [String: String] = [:], _ body: () async throws -> Void
      ) async throws {
        let server = try BelfryProcess(
          ["serve", "--data", data, "--port", "0"], environment: environment)
        _ = try await server.note { $0.contains("serves") }
        try await body()
        #expect(try await server.end() == 0)
      }
      _ = try await belfry(["hub", "create", "news", "--data", data])
      try await serving {
        let sent = try await BelfryProcess.run(
          ["send", "--template", "title=Goal!", "--broadcast", "--wait"] + place)
        #expect(
          sent.output.contains("NoTargetFound") || sent.errors.contains("NoTargetFound"), "\(sent)")
      }
      #expect(try await list().contains(#""title":"Goal!""#))
      let shown = try await belfry(["notification", "list", "--search", "goal"] + place)
      #expect(shown.contains("“Goal!”"), "\(shown)")

      try await serving(["BELFRY_KEEP_MESSAGE_TEXT": "off"]) {
        // The first round of maintenance begins with the server.
        let deadline = ContinuousClock.now + .seconds(60)
        while try await !list().contains(#""textState":"off""#), .now < deadline {
          // Another process, which announces no rounds: it is asked again, within a limit.
          try await Task.sleep(for: .milliseconds(50))
        }
      }
      // Whatever the setting is now.
      try await serving {
        let found = try await list()
        #expect(found.contains(#""textState":"off""#) && !found.contains("Goal"), "\(found)")
        let search = try await BelfryProcess.run(
          ["notification", "list", "--search", "goal"] + place)
        #expect(search.output.contains("0 notifications"), "\(search)")
        #expect(search.errors.contains("the text of 1 was not kept"), "\(search)")
        #expect(try await belfry(["notification", "list"] + place).contains("Text not kept"))
      }
    }

    @Test(
      "a hub that is killed in a broadcast finishes it after the restart, and the counts add up")
    func killedInBroadcast() async throws {
      let scratch = try Scratch()
      let emulator = try BelfryProcess(["emulator", "--json", "--port", "0"])
      let line = try await emulator.line { $0.hasPrefix("{") }
      let address = try JSONDecoder().decode(EmulatorLine.self, from: Data(line.utf8))
      let control = Control(base: address.control)
      let phones = try await control.phones(6000)
      // Slow enough that the broadcast is under way for a while.
      _ = try await control.call(
        "POST", "/v1/faults",
        #"{"pns":"apns","stage":"after","action":{"type":"latency","ms":150}}"#)

      let words = ["--emulator", address.control, "--data", scratch.path]
      let (first, one) = try await BelfryProcess.up(words)
      let client = try one.client()
      try await concurrently(phones) { phone in
        try await client.createOrReplace(
          Installation(
            installationID: phone.id, platform: .apns, pushChannel: .handle(phone.token)))
      }
      let id = try #require(
        try await client.broadcast(.apple(#"{"aps":{"alert":"all"}}"#)).notificationID)
      // Killed when some phones have it and some have not.
      try await withLimit(.seconds(60), "the first deliveries") {
        while try await control.delivered(to: phones[0].id).isEmpty {
          try await Task.sleep(for: .milliseconds(1))
        }
      }
      first.signal(SIGKILL)
      _ = try await first.exitCode()
      #expect(try await control.delivered(to: phones[5999].id).isEmpty, "killed too late to show")

      let (second, two) = try await BelfryProcess.up(words)
      let (code, output, errors) = try await BelfryProcess.run([
        "notification", "show", id, "--wait", "--json", "--data", scratch.path,
      ])
      #expect(code == 0, "\(errors)")
      let shown = JSONObject(
        try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
      #expect(shown.text("state") == "Completed")
      #expect(shown.object("outcomes").object("apns").number("Success") == phones.count)
      var repeats = 0
      for phone in phones {
        let ids = try await control.delivered(to: phone.id)
        #expect(!ids.isEmpty, "\(phone.id) did not get it")
        #expect(Set(ids).count <= 1, "a repeat carries the same id")
        repeats += max(0, ids.count - 1)
      }
      // At most the pages that were in flight.
      #expect(repeats <= 4000)
      // What telemetry counts is in the statistics, before the kill and after it.
      let statistics = try await two.client().statistics(from: Date() - 7_200, step: 3_600)
      #expect(statistics.accepted == 1)
      #expect(statistics.delivered == ["apns": phones.count])
      #expect(statistics.failed == [:])
      #expect(two.hub.name == one.hub.name)
      #expect(try await second.end() == 0)
      #expect(try await emulator.end() == 0)
    }
  }
}
