import Foundation
import HubTesting
import Testing

@testable import belfry

extension CommandLineSuite {
  /// `belfry channel`, and a phone that follows one.
  @Suite struct ChannelCommandTests {
    private struct Stack {
      let process: BelfryProcess
      let up: UpLine
      var access: [String] {
        ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name]
      }

      func run(_ words: [String]) async throws -> String {
        let (code, output, errors) = try await BelfryProcess.run(words + access)
        #expect(code == 0, "\(words): \(errors)")
        return output.trimmingCharacters(in: .newlines)
      }
    }

    private func object(_ text: String) throws -> JSONObject {
      JSONObject(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test func `a channel is made, a phone follows it, and shows what is sent`() async throws {
      let (process, up) = try await BelfryProcess.up()
      let stack = Stack(process: process, up: up)
      let made = try object(try await stack.run(["channel", "create", "--json"]))
      let id = made.text("id")
      #expect(made.text("storage") == "latest")
      #expect(try await stack.run(["channel", "list"]).hasPrefix(id))
      #expect(try await stack.run(["channel", "show", id]).contains("latest: the newest"))

      let phone = try BelfryProcess(
        ["phone", "--control", up.emulator.control, "--channel", id, "--count", "2"]
          + stack.access)
      _ = try await phone.line { $0.contains("waiting for notifications") }
      #expect(phone.text.contains("channel          \(id)"))
      let sent = try await stack.run(
        ["channel", "send", id, "--state", #"{"home":1,"scorer":"Ada"}"#])
      #expect(sent.hasPrefix("APNs has taken it: request "), "\(sent)")
      _ = try await phone.line { $0.contains("Live Activity: update") }
      _ = try await phone.line { $0.contains("scorer: Ada") }
      let receipt = try object(
        try await stack.run(
          [
            "channel", "send", id, "--state", #"{"home":2}"#, "--end", "--until", "+1h",
            "--priority", "5", "--json",
          ]))
      #expect(UUID(uuidString: receipt.text("requestId")) != nil)
      _ = try await phone.line { $0.contains("Live Activity: end") }
      #expect(try await phone.exitCode() == 0)

      #expect(
        try await stack.run(["channel", "delete", id, "--json"]) == #"{"deleted":"\#(id)"}"#)
      #expect(try await stack.run(["channel", "list", "--json"]) == #"{"channels":[]}"#)
      for words in [["show", id], ["delete", id], ["send", id, "--state", "{}"]] {
        let (code, _, errors) = try await BelfryProcess.run(["channel"] + words + stack.access)
        #expect(code == 1)
        #expect(errors.contains("ChannelNotRegistered"), "\(errors)")
      }
      let (code, _, errors) = try await BelfryProcess.run(
        ["phone", "--control", up.emulator.control, "--channel", id] + stack.access)
      #expect(code == 1)
      #expect(errors.contains("no channel '\(id)'"), "\(errors)")
      #expect(try await process.end() == 0)
    }

    @Test func `what APNs will not have is told with its reason`() async throws {
      let (process, up) = try await BelfryProcess.up()
      let stack = Stack(process: process, up: up)
      let made = try object(
        try await stack.run(["channel", "create", "--storage", "none", "--json"]))
      let id = made.text("id")
      for (words, reason) in [
        (["--state", "{}", "--until", "+1h"], "BadExpirationDate"),
        (["--apns", "[]"], "JSON object"),
        (["--apns", "{" + String(repeating: " ", count: 5200) + "}"], "5120"),
      ] {
        let (code, _, errors) = try await BelfryProcess.run(
          ["channel", "send", id] + words + stack.access)
        #expect(code == 1)
        #expect(errors.contains(reason), "\(errors)")
      }
      #expect(try await process.end() == 0)
    }

    @Test(
      arguments: [
        (["create", "--storage", "all"], "--storage must be latest or none"),
        (["show"], "ID is missing"),
        (["show", "x y"], "'x y' is not a channel id"),
        (["send", "AAAA"], "say what to send"),
        (["send", "AAAA", "--state", "{}", "--apns", "{}"], "exclude each other"),
        (["send", "AAAA", "--state", "{"], "--state is not valid JSON"),
        (["send", "AAAA", "--state", "[]"], "must be a JSON object"),
        (["send", "AAAA", "--apns", "{}", "--end"], "--end goes with --state"),
        (["send", "AAAA", "--state", "{}", "--until", "soon"], "--until must be a time"),
        (["send", "AAAA", "--state", "{}", "--priority", "7"], "--priority must be 10, 5 or 1"),
        (["crate"], "'channel' has no 'crate'; did you mean 'create'?"),
      ])
    func `words that make no sense are 64 and say why`(
      words: [String], reason: String
    ) async throws {
      let (code, _, errors) = try await BelfryProcess.run(["channel"] + words)
      #expect(code == 64)
      #expect(errors.contains(reason), "\(errors)")
    }

    @Test(arguments: [["--platform", "fcm"], ["--secure", "--user", "ann"]])
    func `only a plain apns phone follows a channel`(words: [String]) async throws {
      let (code, _, errors) = try await BelfryProcess.run(
        ["phone", "--channel", "AAAA"] + words)
      #expect(code == 64)
      #expect(errors.contains("--channel is for apns phones"), "\(errors)")
    }

    @Test func `a Live Activity is told by its event and state`() {
      let shown = LiveActivityShown(
        #"{"aps":{"event":"update","content-state":{"score":[1,0],"over":false}}}"#)
      #expect(shown?.lines == ["Live Activity: update", "score: [1,0]", "over: false"])
      #expect(LiveActivityShown(#"{"aps":{"alert":"Hi"}}"#) == nil)
      #expect(LiveActivityShown("hello") == nil)
    }
  }
}
