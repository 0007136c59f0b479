import Foundation
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import belfry

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension CommandLineSuite {
  @Suite("Sends of every kind, on the real stack")
  struct SendKindsTests {
    private static let payload = #"{"aps":{"alert":"hi"}}"#

    /// A running stack with phones and a client.
    private func withStack(
      phones count: Int, _ words: [String] = [],
      _ body: (UpLine, Control, [(id: String, token: String)]) async throws -> Void
    ) async throws {
      let (process, up) = try await BelfryProcess.up(words)
      let control = Control(base: up.emulator.control)
      try await body(up, control, try await control.phones(count))
      #expect(try await process.end() == 0)
    }

    private func belfry(_ up: UpLine, _ words: [String]) async throws -> (Int32, String, String) {
      try await BelfryProcess.run(
        words + ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name])
    }

    @Test("a handle, and a file of handles, are reached without being registered")
    func handles() async throws {
      try await withStack(phones: 3) { up, control, phones in
        let (code, output, errors) = try await belfry(
          up, ["send", "--apns", Self.payload, "--handle", phones[0].token, "--wait"])
        #expect(code == 0, "\(errors)")
        #expect(output.contains("Success"))
        let scratch = try Scratch()
        let wrong = String(repeating: "0", count: 64)
        let file = try scratch.file(
          "handles", phones.map(\.token).joined(separator: "\n") + "\n\(wrong)\n")
        let (second, shown, complaint) = try await belfry(
          up, ["send", "--apns", Self.payload, "--handles", file, "--wait", "--json"])
        #expect(second == 0, "\(complaint)")
        let telemetry = JSONObject(
          try JSONSerialization.jsonObject(with: Data(shown.utf8)) as? [String: Any])
        #expect(telemetry.object("outcomes").object("apns").number("Success") == 3)
        #expect(telemetry.object("outcomes").object("apns").number("BadChannel") == 1)
        #expect(try await control.delivered(to: phones[0].id).count == 2)
        #expect(try await control.delivered(to: phones[2].id).count == 1)
      }
    }

    @Test("the errors of a send can be read at the address in its telemetry")
    func errorDetails() async throws {
      try await withStack(phones: 1) { up, _, phones in
        let client = try up.client()
        let wrong = String(repeating: "0", count: 64)
        let receipt = try await client.sendDirect(
          .apple(Self.payload), to: [.handle(phones[0].token), .handle(wrong)])
        let id = try #require(receipt.notificationID)
        let telemetry = try await withLimit(.seconds(30), "the outcome") {
          while true {
            let found = try await client.telemetry(of: id)
            if found.state.isFinal { return found }
          }
        }
        let address = try #require(telemetry.pnsErrorDetailsURI.flatMap { URL(string: $0) })
        let (data, _) = try await URLSession.shared.data(from: address)
        #expect(try PnsFeedback.parse(data).map(\.pnsHandle) == [wrong])
      }
    }

    @Test("a scheduled send waits, survives kill -9, and goes out when its time comes")
    func scheduled() async throws {
      let scratch = try Scratch()
      let emulator = try BelfryProcess(["emulator", "--json", "--port", "0"])
      let line = try await emulator.line { $0.hasPrefix("{") }
      let address = try JSONDecoder().decode(EmulatorLine.self, from: Data(line.utf8))
      let control = Control(base: address.control)
      let phone = try #require(try await control.phones(1).first)
      let words = ["--emulator", address.control, "--data", scratch.path]
      let (first, one) = try await BelfryProcess.up(words)
      try await one.client().createOrReplace(
        Installation(installationID: "i", platform: .apns, pushChannel: .handle(phone.token)))
      func schedule(_ time: String) async throws -> String {
        let (code, output, errors) = try await BelfryProcess.run([
          "send", "--apns", Self.payload, "--broadcast", "--at", time, "--json", "--data",
          scratch.path,
        ])
        #expect(code == 0, "\(errors)")
        return JSONObject(
          try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any]
        ).text("notificationId")
      }
      let cancelled = try await schedule("+1h")
      let kept = try await schedule("+3s")
      let (code, output, errors) = try await BelfryProcess.run([
        "notification", "cancel", cancelled, "--data", scratch.path,
      ])
      #expect(code == 0, "\(errors)")
      #expect(output.contains("cancelled"))
      first.signal(SIGKILL)
      _ = try await first.exitCode()

      let (second, two) = try await BelfryProcess.up(words)
      let client = try two.client()
      let telemetry = try await client.finalTelemetry(of: kept)
      #expect(telemetry.state == .completed)
      #expect(telemetry.count(of: .success) == 1)
      #expect(try await client.telemetry(of: cancelled).state == .canceled)
      #expect(try await control.delivered(to: phone.id).count == 1)
      let (again, _, complaint) = try await BelfryProcess.run([
        "notification", "cancel", kept, "--data", scratch.path,
      ])
      #expect(again == 1)
      #expect(complaint.contains("was sent already"))
      #expect(try await second.end() == 0)
      #expect(try await emulator.end() == 0)
    }

    @Test("a test send reports each device, and the same key sends once")
    func testAndKey() async throws {
      try await withStack(phones: 1) { up, control, phones in
        try await up.client().createOrReplace(
          Installation(
            installationID: "i", platform: .apns, pushChannel: .handle(phones[0].token)))
        let (code, output, errors) = try await belfry(
          up, ["send", "--apns", Self.payload, "--broadcast", "--test"])
        #expect(code == 0, "\(errors)")
        #expect(output.contains("successfully sent"))
        #expect(output.contains("1 of 1 devices reached"))
        var ids: Set<String> = []
        for _ in 0..<2 {
          let (code, output, _) = try await belfry(
            up, ["send", "--apns", Self.payload, "--broadcast", "--key", "once", "--wait"])
          #expect(code == 0)
          ids.insert(output.split(separator: "\n").first.map(String.init) ?? "")
        }
        #expect(ids.count == 1)
        #expect(try await control.delivered(to: phones[0].id).count == 2)
      }
    }

    @Test(
      "a broadcast at a terminal says how many devices and asks; --yes does not; nobody is told")
    func asks() async throws {
      try await withStack(phones: 1) { up, control, phones in
        let questions = Mutex<[String]>([])
        let printed = Mutex<[String]>([])
        func send(_ words: [String], answer: String) async -> ExitCode {
          var context = CommandContext(
            environment: [:], print: { line in printed.withLock { $0.append(line) } },
            note: { _ in })
          context.ask = { question in
            questions.withLock { $0.append(question) }
            return answer
          }
          return await BelfryCommandLine.run(
            ["send", "--apns", Self.payload] + words
              + ["--connection", up.hub.connectionStrings.full, "--hub", up.hub.name],
            in: context)
        }
        #expect(await send(["--tags", "nobody"], answer: "n") == .done)
        #expect(printed.withLock { $0.first?.contains("0 devices match") } == true)
        try await up.client().createOrReplace(
          Installation(
            installationID: "i", platform: .apns, pushChannel: .handle(phones[0].token)))
        #expect(await send(["--broadcast"], answer: "n") != .done)
        #expect(questions.withLock { $0 }.first?.hasPrefix("this goes to 1 device of hub") == true)
        #expect(try await control.delivered(to: phones[0].id).isEmpty)
        #expect(await send(["--broadcast", "--wait"], answer: "y") == .done)
        #expect(await send(["--broadcast", "--wait", "--yes"], answer: "n") == .done)
        #expect(questions.withLock { $0 }.count == 2)
        #expect(try await control.delivered(to: phones[0].id).count == 2)
      }
    }

    @Test("compatibility: strict has the original's limits, without it they are wider")
    func compatibility() async throws {
      let expression = (0..<30).map { "t\($0)" }.joined(separator: "||")
      for (words, wanted) in [([], Int32(0)), (["--compatibility", "strict"], 1)] {
        try await withStack(phones: 1, words) { up, _, _ in
          let (code, _, _) = try await belfry(
            up, ["send", "--apns", Self.payload, "--tags", expression])
          #expect(code == wanted)
          let (late, _, _) = try await belfry(
            up, ["send", "--apns", Self.payload, "--broadcast", "--at", "+8d"])
          #expect(late == wanted)
        }
      }
    }
  }
}
