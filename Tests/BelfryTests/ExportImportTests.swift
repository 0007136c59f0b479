import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("Export and import from the command line")
  struct ExportImportTests {
    private func devices(of client: NotificationHubClient) async throws -> Set<Registration> {
      Set(
        try await client.registrations().all().map { registration in
          var one = registration
          one.etag = nil
          if one.isFromInstallation { one.registrationID = nil }
          return one
        })
    }

    @Test("a hub moves to another with all its devices")
    func moves() async throws {
      let scratch = try Scratch()
      let (first, from) = try await BelfryProcess.up()
      let (second, to) = try await BelfryProcess.up()
      let source = try from.client()
      let target = try to.client()
      try await concurrently(Array(0..<70)) { number in
        try await source.createOrReplace(
          Installation(
            installationID: "phone-\(number)", platform: .apns,
            pushChannel: .handle(String(repeating: "AB", count: 32)),
            tags: ["a", Tag(rawValue: "n\(number)")],
            templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(m)"}}"#)]))
        _ = try await source.create(
          Registration(platform: .fcmv1, channel: .handle("f-\(number)"), tags: ["b"]))
      }
      let file = scratch.path + "/devices.txt"
      let (code, output, errors) = try await BelfryProcess.run([
        "export", file, "--connection", from.hub.connectionStrings.full, "--hub", from.hub.name,
        "--json",
      ])
      #expect(code == 0, "\(errors)")
      #expect(output.contains(#""installations":70"#))
      #expect(output.contains(#""registrations":70"#))
      let again = try await BelfryProcess.run([
        "import", file, "--data", to.data, "--hub", to.hub.name,
      ])
      #expect(again.0 == 0, "\(again.2)")
      #expect(again.1.contains("imported 140 lines, 0 failed"))
      let before = try await devices(of: source)
      #expect(before.count == 210)
      #expect(try await devices(of: target) == before)
      #expect(try await first.end() == 0)
      #expect(try await second.end() == 0)
    }

    @Test("a line with more new tags than the hub may have is refused alone")
    func quota() async throws {
      let scratch = try Scratch()
      let made = try await BelfryProcess.run(["hub", "create", "shop", "--data", scratch.path])
      #expect(made.0 == 0, "\(made.2)")
      let lines = [("a", #""x""#), ("b", #""p","q""#), ("c", #""x""#)].map { id, tags in
        #"{"installationId":"\#(id)","platform":"fcmv1","pushChannel":"t-\#(id)","tags":[\#(tags)]}"#
      }
      let file = try scratch.file("devices.txt", lines.joined(separator: "\n"))
      let configuration = try scratch.file(
        "belfry.json", #"{"data":"\#(scratch.path)","tagsPerHub":2}"#)
      // One after the other: the second can only be refused once the first has its tag.
      for line in 1...3 {
        let one = try scratch.file("line.txt", lines[line - 1])
        let (code, output, errors) = try await BelfryProcess.run([
          "import", one, "--config", configuration,
        ])
        #expect(code == (line == 2 ? 1 : 0), "\(errors)")
        #expect(output.contains(line == 2 ? "imported 0 lines, 1 failed" : "imported 1 lines"))
        #expect(errors.contains("line 1: QuotaExceeded: with this the hub") == (line == 2))
      }
      let all = try await BelfryProcess.run(["import", file, "--config", configuration])
      #expect(all.0 == 1)
      #expect(all.1.contains("imported 2 lines, 1 failed"), "\(all.1) \(all.2)")
    }

    @Test("two thousand registrations of every platform come out as they went in")
    func identicalLists() async throws {
      let scratch = try Scratch()
      let (first, from) = try await BelfryProcess.up()
      let (second, to) = try await BelfryProcess.up()
      let lines = (0..<2000).map { Self.registration($0).importLine }
      let file = try scratch.file("in.txt", lines.joined(separator: "\n"))
      var lists: [Set<Registration>] = []
      for (hub, input) in [(from, file), (to, scratch.path + "/moved.txt")] {
        let imported = try await BelfryProcess.run(["import", input, "--data", hub.data])
        #expect(imported.0 == 0, "\(imported.2)")
        #expect(imported.1.contains("imported 2000 lines, 0 failed"))
        lists.append(Set(try await hub.client().registrations().all()))
        let exported = try await BelfryProcess.run([
          "export", scratch.path + "/moved.txt", "--data", hub.data, "--json",
        ])
        #expect(exported.1.contains(#""registrations":2000"#), "\(exported.2)")
      }
      #expect(lists[0].count == 2000)
      #expect(lists[0] == lists[1])
      #expect(try await first.end() == 0)
      #expect(try await second.end() == 0)
    }

    /// Native and template in turn, with ids of its own as a hub's export has them.
    private static func registration(_ number: Int) -> Registration {
      let platform = PushPlatform.allCases[number % PushPlatform.allCases.count]
      let channel: PushChannel =
        switch platform {
        case .apns: .handle(String(repeating: "AB", count: 30) + String(10_000 + number).suffix(4))
        case .wns, .mpns: .handle("https://db5.notify.windows.com/?token=\(number)&x=%2b")
        case .baidu: .baidu(userID: "u\(number)", channelID: "c")
        case .browser:
          .subscription(
            endpoint: "https://push.example.com/\(number)",
            p256dh:
              "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpk"
              + "NtoIAiw4", auth: "BTBZMqHH6r4Tts7J_aSIgg")
        default: .handle("handle-\(number)")
        }
      var one = Registration(
        platform: platform, channel: channel, tags: ["all", Tag(rawValue: "n:\(number)")])
      one.registrationID = "\(1000 + number)-\(number)-1"
      guard number % 2 == 1 else { return one }
      one.pushVariables = ["name": "Zoë & <\(number)>"]
      var template = PushTemplate(body: #"{"a":"$(a)"}"#)
      if platform == .wns || platform == .mpns {
        template.headers =
          platform == .wns
          ? ["X-WNS-Type": "wns/raw"]
          : [
            "X-NotificationClass": "3"
          ]
      }
      one.kind = .template(template, name: "main")
      return one
    }

    @Test("lines that fail are named, kept apart, and do not stop the others")
    func failures() async throws {
      let scratch = try Scratch()
      let (process, up) = try await BelfryProcess.up()
      let device = Registration(platform: .fcmv1, channel: .handle("f"), tags: ["b"])
      let good = device.requestLine
      let file = try scratch.file("in.txt", "nonsense\n\n\(good)\n{\"a\":1}\n\(good)\n")
      let failed = scratch.path + "/failed.txt"
      let words = ["import", file, "--data", up.data]
      let (code, output, errors) = try await BelfryProcess.run(words + ["--failed", failed])
      #expect(code == 1)
      #expect(output.contains("imported 2 lines, 2 failed"))
      #expect(errors.contains("line 1: "))
      #expect(errors.contains("line 4: "))
      #expect(try String(contentsOfFile: failed, encoding: .utf8) == "nonsense\n{\"a\":1}\n")
      let rest = try await BelfryProcess.run(words + ["--from-line", "5"])
      #expect(rest.0 == 0)
      #expect(rest.1.contains("imported 1 lines"))
      #expect(try await process.end() == 0)
      let away = try await BelfryProcess.run([
        "import", file, "--connection", up.hub.connectionStrings.full, "--hub", up.hub.name,
        "--from-line", "5",
      ])
      #expect(away.0 == 69)
      #expect(away.2.contains("--from-line 5"))
      let none = try await BelfryProcess.run(["import", scratch.path + "/none", "--data", up.data])
      #expect(none.0 != 0)
    }
  }
}

extension Registration {
  /// What an app would post, without the entry round it.
  fileprivate var requestLine: String {
    "<FcmV1RegistrationDescription xmlns=\"http://schemas.microsoft.com/netservices/2010/10/"
      + "servicebus/connect\"><FcmV1RegistrationId>\(channel.handle)</FcmV1RegistrationId>"
      + "</FcmV1RegistrationDescription>"
  }
}
