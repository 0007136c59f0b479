import Foundation
import HubTesting
import Testing

extension CommandLineSuite {
  /// `belfry emulator wait` in shell tests.
  @Suite("belfry emulator wait") struct EmulatorWaitTests {
    @Test("ends with 0 once the message is there, and finds it again later")
    func arrives() async throws {
      let (process, up) = try await BelfryProcess.up()
      let phone = try #require(try await Control(base: up.emulator.control).phones(1).first)
      let words = ["emulator", "wait", "--control", up.emulator.control, "--to", phone.token]
      let waiting = try BelfryProcess(words + ["--contains", "Grüße \"x\"", "--timeout", "60"])
      let access = ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      for alert in [#"other"#, #"Gr\u00fc\u00dfe \"x\""#] {
        let sent = try await BelfryProcess.run(
          ["send", "--apns", #"{"aps":{"alert":"\#(alert)"}}"#, "--handle", phone.token] + access)
        #expect(sent.code == 0, "\(sent.errors)")
      }
      #expect(try await waiting.exitCode() == 0, "\(waiting.errors)")
      #expect(waiting.text.contains(#""aps""#))

      let again = try await BelfryProcess.run(words + ["--json", "--timeout", "0"])
      #expect(again.code == 0)
      let first = JSONObject(
        try JSONSerialization.jsonObject(with: Data(again.output.utf8)) as? [String: Any])
      #expect(first.text("text").contains("other"))
      let later = try await BelfryProcess.run(
        words + ["--after", "\(first.number("seq"))", "--contains", "other", "--timeout", "0"])
      #expect(later.code == 1)
      #expect(
        later.errors.contains("is registered and online; it got 2 messages, 0 wait; the last"),
        "\(later.errors)")
      #expect(try await process.end() == 0)
    }

    @Test("says what is wrong with the phone or the emulator")
    func mistakes() async throws {
      let emulator = try BelfryProcess(["emulator", "--json", "--port", "0"])
      let line = try await emulator.line { $0.hasPrefix("{") }
      let control = JSONObject(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      ).text("control")
      let words = ["emulator", "wait", "--control", control, "--timeout", "0", "--to"]
      let unknown = try await BelfryProcess.run(words + [String(repeating: "ab", count: 32)])
      #expect(unknown.code == 64 && unknown.errors.contains("no phone of the emulator at"))
      let phone = try #require(try await Control(base: control).phones(1).first)
      let silent = try await BelfryProcess.run(words + [phone.token.uppercased()])
      #expect(silent.code == 1 && silent.errors.contains("no request has named it"))
      #expect(try await BelfryProcess.run(["emulator", "wait", "--control", control]).code == 64)
      let empty = try await BelfryProcess.run(words + [phone.token, "--contains", ""])
      #expect(empty.code == 64 && empty.errors.contains("--contains is empty"))
      #expect(try await emulator.end() == 0)
      #expect(try await BelfryProcess.run(words + [phone.token]).code == 69)
    }
  }
}
