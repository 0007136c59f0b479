import Foundation
import HubTesting
import NotificationHubs
import Testing
import Wire

extension CommandLineSuite {
  @Suite("What became of a notification, from the command line")
  struct NotificationCommandTests {
    private static let payload = #"{"aps":{"alert":"tea"}}"#

    /// A stack with a device that is reached, one with a dead handle, and one with another tag.
    private func withDevices(
      _ body: (UpLine, Control, String) async throws -> Void
    ) async throws {
      let (process, up) = try await BelfryProcess.up()
      let control = Control(base: up.emulator.control)
      let phones = try await control.phones(2)
      let client = try up.client()
      for (id, handle, tag) in [
        ("good", phones[0].token, "news"), ("dead", String(repeating: "0", count: 64), "news"),
        ("other", phones[1].token, "sport"),
      ] {
        try await client.createOrReplace(
          Installation(
            installationID: id, platform: .apns, pushChannel: .handle(handle),
            tags: [Tag(rawValue: tag)]))
      }
      try await body(up, control, phones[0].id)
      #expect(try await process.end() == 0)
    }

    private func belfry(
      _ up: UpLine, _ words: [String]
    ) async throws -> (code: Int32, output: String, errors: String) {
      try await BelfryProcess.run(
        words + ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name])
    }

    @Test("a dry run tells whom a send would reach and with what, and sends nothing")
    func dryRun() async throws {
      try await withDevices { up, control, phone in
        let send = ["send", "--dry-run", "--apns", Self.payload, "--tags"]
        let seen = try await belfry(up, send + ["news && !muted"])
        #expect(seen.code == 0, "\(seen.errors)")
        #expect(seen.output.hasPrefix("it would go to 2 devices\n"), "\(seen.output)")
        #expect(seen.output.contains("apns     2\n"))
        #expect(seen.output.contains(Self.payload))
        #expect(seen.output.hasSuffix("nothing was sent\n"))
        let json = try await belfry(up, send + ["news", "--json"])
        #expect(try JSONValue.parse(json.output.utf8)["devices"]?.scalarText == "2")
        let nobody = try await belfry(up, send + ["nobody"])
        #expect(nobody.code == 1 && nobody.output.contains("it would go to 0 devices"))
        let both = try await belfry(up, send + ["news", "--wait"])
        #expect(both.code == 64 && both.errors.contains("--dry-run and --wait"))
        let preview = try await up.client().preview(.apple(Self.payload), to: "news")
        #expect(preview.devices == 2)
        #expect(try await control.delivered(to: phone).isEmpty)
      }
    }

    @Test("watch, devices and explain tell what became of a send")
    func story() async throws {
      try await withDevices { up, _, _ in
        let sent = try await belfry(
          up, ["send", "--apns", Self.payload, "--tags", "news && !muted", "--json"])
        let id = try #require(
          try JSONValue.parse(sent.output.utf8)["notificationId"]?.scalarText)
        try await checkWatch(up, id)
        try await checkDevices(up, id)
        try await checkExplain(up, id)
        try await checkClient(try up.client(), id)
      }
    }

    private func checkWatch(_ up: UpLine, _ id: String) async throws {
      let watched = try await belfry(up, ["notification", "watch", id])
      #expect(watched.code == 0, "\(watched.errors)")
      #expect(watched.output.contains("Completed: 2"), "\(watched.output)")
      #expect(watched.output.contains("1 failed"))
      #expect(watched.output.contains(/Success +1\n/))
      #expect(watched.output.contains(/BadChannel +1\n/))
      #expect(watched.output.contains("took"))
      let json = try await belfry(up, ["notification", "watch", id, "--json"])
      let last = try #require(json.output.split(separator: "\n").last)
      #expect(try JSONValue.parse(last.utf8)["state"]?.scalarText == "Completed")
      let none = try await belfry(up, ["notification", "watch", "no-such-id"])
      #expect(none.code == 1, "\(none.errors)")
    }

    private func checkDevices(_ up: UpLine, _ id: String) async throws {
      let all = try await belfry(up, ["notification", "devices", id])
      #expect(all.code == 0, "\(all.errors)")
      #expect(
        all.output.contains(/dead +apns +BadChannel \(400 BadDeviceToken.*\)/), "\(all.output)")
      #expect(all.output.hasSuffix("\n1 device\n"))
      let wanted = try await belfry(
        up, ["notification", "devices", id, "--outcome", "ExpiredChannel"])
      #expect(wanted.output == "0 devices\n")
      let unknown = try await belfry(up, ["notification", "devices", id, "--outcome", "Lost"])
      #expect(unknown.code == 64, "\(unknown.errors)")
    }

    private func checkExplain(_ up: UpLine, _ id: String) async throws {
      for (device, code, words) in [
        ("good", 0, ["delivered", "{\"aps\":{\"alert\":\"tea\"}}", "✓ news"]),
        ("dead", 1, ["BadDeviceToken", "400"]), ("other", 1, ["✗ news", "✓ !muted"]),
        ("nobody", 1, ["nobody"]),
      ] as [(String, Int32, [String])] {
        let found = try await belfry(
          up, ["notification", "explain", id, "--installation", device])
        #expect(found.code == code, "\(device): \(found.errors)")
        for word in words {
          #expect((found.output + found.errors).contains(word), "\(device): \(found.output)")
        }
      }
      let words = try await belfry(up, ["notification", "explain", id])
      #expect(words.code == 64 && words.errors.contains("--installation"))
    }

    /// The same by the SDK.
    private func checkClient(_ client: NotificationHubClient, _ id: String) async throws {
      var devices: [DeviceOutcome] = []
      for try await device in client.devices(of: id, .init(outcome: .badChannel)) {
        devices.append(device)
      }
      #expect(devices.map(\.installationID) == ["dead"])
      #expect(devices.first?.reason == "BadDeviceToken")
      #expect(try await client.explanation(of: id, installation: "good").verdict == .delivered)
      #expect(try await client.explanation(of: id, installation: "other").verdict == .tagsDiffer)
      let progress = try await client.progress(of: id)
      #expect(progress.state == .completed)
      #expect((progress.done, progress.failed, progress.succeeded) == (2, 1, 1))
      await #expect(throws: NotificationHubError.self) {
        _ = try await client.progress(of: "no-such-id")
      }
    }
  }
}
