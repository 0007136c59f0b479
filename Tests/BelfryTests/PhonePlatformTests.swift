import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  /// Virtual devices of every platform.
  @Suite("Phones of every platform") struct PhonePlatformTests {
    private static let platforms = ["apns", "fcm", "web", "wns", "adm", "baidu", "xiaomi"]
    /// As telemetry calls them.
    private static let targets = ["apns", "fcmv1", "browser", "wns", "adm", "baidu", "xiaomi"]

    @Test("one template send reaches a virtual device of every platform, and telemetry says so")
    func everyPlatform() async throws {
      let (process, up) = try await BelfryProcess.up()
      try await sendToAll(up)
      #expect(try await process.end() == 0)
    }

    @Test("belfry up --emulator reaches them through an emulator that runs elsewhere")
    func joinedEmulator() async throws {
      let emulator = try BelfryProcess(["emulator", "--json", "--port", "0"])
      let line = try await emulator.line { $0.hasPrefix("{") }
      let control = JSONObject(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      ).text("control")
      let (process, up) = try await BelfryProcess.up(["--emulator", control])
      try await sendToAll(up)
      #expect(try await process.end() == 0)
      #expect(try await emulator.end() == 0)
    }

    @Test("plain text reaches a device of WNS as it stands")
    func raw() async throws {
      let (process, up) = try await BelfryProcess.up()
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      for platform in ["wns", "adm"] {
        let phone = try BelfryProcess(
          [
            "phone", "--platform", platform, "--control", up.emulator.control, "--tags", platform,
            "--count", "1",
          ] + access)
        _ = try await phone.line { $0.contains("waiting") }
        let payload =
          platform == "adm" ? [#"{"data":{"message":"door open"}}"#] : ["door open", "--raw"]
        let sent = try await BelfryProcess.run(
          ["send", "--\(platform)"] + payload + ["--tags", platform, "--wait"] + access)
        #expect(sent.code == 0, "\(sent.errors)")
        #expect(try await phone.exitCode() == 0, "\(phone.errors)")
        #expect(phone.text.contains("│ door open "), "\(phone.text)")
        // Labels and values stand apart.
        let rows = phone.text.split(separator: "\n").prefix { !$0.contains("waiting") }
        #expect(rows.allSatisfy { $0.contains("  ") }, "\(phone.text)")
      }
      #expect(try await process.end() == 0)
    }

    @Test("eight phones that wait all ring")
    func eight() async throws {
      let (process, up) = try await BelfryProcess.up()
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      let phones = try (0..<8).map { _ in
        try BelfryProcess(
          ["phone", "--control", up.emulator.control, "--tags", "ring", "--count", "1", "--json"]
            + access)
      }
      for phone in phones { _ = try await phone.line { $0.contains("installationId") } }
      let sent = try await BelfryProcess.run(
        ["send", "--template", "message=ring", "--tags", "ring"] + access)
      #expect(sent.code == 0, "\(sent.errors)")
      for phone in phones {
        #expect(try await phone.exitCode() == 0, "\(phone.errors)")
        #expect(phone.text.contains(#""body":"ring""#))
      }
      #expect(try await process.end() == 0)
    }

    private func sendToAll(_ up: UpLine) async throws {
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      let phones = try Self.platforms.map { platform in
        let phone = try BelfryProcess(
          [
            "phone", "--platform", platform, "--control", up.emulator.control, "--tags", "news",
            "--count", "1", "--json",
          ] + access)
        return (platform: platform, process: phone)
      }
      for phone in phones {
        _ = try await phone.process.line { $0.contains("installationId") }
      }
      let (code, output, errors) = try await BelfryProcess.run(
        [
          "send", "--template", "message=Hello <all> & \"you\"", "--tags", "news", "--wait",
          "--json",
        ]
          + access)
      #expect(code == 0, "\(errors)")
      let telemetry = JSONObject(
        try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
      #expect(telemetry.text("state") == "Completed", "\(output)")
      for target in Self.targets {
        let outcomes = telemetry.object("outcomes").object(target)
        #expect(outcomes.number("Success") == 1, "\(target): \(output)")
      }
      for phone in phones {
        let shown = try await phone.process.line { $0.contains("payload") }
        let arrival = JSONObject(
          try JSONSerialization.jsonObject(with: Data(shown.utf8)) as? [String: Any])
        #expect(arrival.text("body") == "Hello <all> & \"you\"", "\(phone.platform): \(shown)")
        #expect(try await phone.process.exitCode() == 0)
      }
    }
  }
}
