import Foundation
import HubTesting
import NotificationHubs
import Testing

extension CommandLineSuite {
  @Suite("The hub here, its portal and its last notification, from the command line")
  struct StatusCommandTests {
    /// A `belfry up` that commands find without options.
    private func withUp(
      _ body: (_ environment: [String: String], _ up: UpLine, _ here: Scratch) async throws -> Void
    ) async throws {
      let (home, here) = (try Scratch(), try Scratch())
      let environment = ["BELFRY_HOME": home.path]
      let process = try BelfryProcess(
        ["up", "--json", "--port", "0"], environment: environment, in: home.path)
      let line = try await process.line { $0.hasPrefix("{") }
      try await body(
        environment, try JSONDecoder().decode(UpLine.self, from: Data(line.utf8)), here)
      #expect(try await process.end() == 0)
    }

    @Test("status says which hub it is, why, whether it is ready, and what was sent last")
    func status() async throws {
      try await withUp { environment, up, here in
        func belfry(_ words: String...) async throws -> String {
          let seen = try await BelfryProcess.run(words, environment: environment, in: here.path)
          #expect(seen.code == 0, "\(words): \(seen.errors)")
          return seen.output
        }
        let before = try await belfry("status")
        #expect(before.contains("uses    \(up.data), from the running `belfry up`"), "\(before)")
        #expect(before.contains("server  ready at \(up.hub.url)"), "\(before)")
        #expect(before.contains("demo: 0 devices, credentials "), "\(before)")
        #expect(before.contains("nothing sent yet"), "\(before)")
        // The key of the portal is in none of them.
        #expect(before.contains("/$portal/") && !before.contains("#key="), "\(before)")
        let sent = try await up.client().send(.template(["message": "x"]), to: "nobody")
        let after = try await belfry("status", "--json")
        #expect(after.contains(try #require(sent.notificationID)), "\(after)")
      }
    }

    @Test("status of a directory whose server does not run says how to start it")
    func noServer() async throws {
      let here = try Scratch()
      let environment = ["BELFRY_HOME": here.path]
      func belfry(_ words: String...) async throws -> (code: Int32, output: String, errors: String)
      {
        try await BelfryProcess.run(words, environment: environment, in: here.path)
      }
      let nothing = try await belfry("status")
      #expect(nothing.code == 64 && nothing.errors.contains("which hub?"), "\(nothing)")
      _ = try await belfry("hub", "create", "shop")
      let seen = try await belfry("status")
      #expect(seen.code == 0 && seen.output.contains("none runs; start `belfry serve"), "\(seen)")
      #expect(seen.output.contains("shop: 0 devices, no credential, nothing sent yet"), "\(seen)")
      let open = try await belfry("open")
      #expect(open.code == 69 && open.errors.contains("no server runs on"), "\(open)")
    }

    @Test("open shows the portal's key to the browser and to no other user")
    func open() async throws {
      try await withUp { environment, up, here in
        let log = here.path + "/opened"
        let browser = try here.file(
          "browser", "#!/bin/sh\necho \"$1\" > \(log).part\nmv \(log).part \(log)\n")
        #expect(chmod(browser, 0o755) == 0)
        var environment = environment
        // Alternatives, of which the first is not there.
        environment["BROWSER"] = "\(here.path)/none:\(browser) %s"
        let printed = try await BelfryProcess.run(
          ["open", "--print"], environment: environment, in: here.path)
        #expect(printed.output.hasPrefix(up.hub.url + "/$portal/#key="), "\(printed)")
        let opened = try await BelfryProcess.run(["open"], environment: environment, in: here.path)
        #expect(opened.code == 0 && !opened.output.contains("#key="), "\(opened)")
        // The browser runs on after the command.
        let word = try await text(of: log)
        #expect(word.hasPrefix("file://") && !word.contains("#key="), "\(word)")
        let page = word.trimmingCharacters(in: .newlines).dropFirst("file://".count)
        let html = try String(contentsOfFile: String(page), encoding: .utf8)
        #expect(html.contains(printed.output.trimmingCharacters(in: .newlines)))
        let attributes = try FileManager.default.attributesOfItem(atPath: String(page))
        #expect(attributes[.posixPermissions] as? Int == 0o600)
      }
    }

    private func text(of file: String) async throws -> String {
      let end = ContinuousClock.now + .seconds(60)
      while ContinuousClock.now < end {
        if let text = try? String(contentsOfFile: file, encoding: .utf8) { return text }
        await Task.yield()
      }
      throw ProcessFault("there is no \(file)")
    }

    @Test("a notification is named by the beginning of its id, or as the last one")
    func choice() async throws {
      try await withUp { environment, up, here in
        func belfry(_ words: [String]) async throws -> (code: Int32, output: String, errors: String)
        {
          try await BelfryProcess.run(words, environment: environment, in: here.path)
        }
        let none = try await belfry(["notification", "show", "--last"])
        #expect(
          none.code == 1 && none.errors.contains("nothing was sent in hub demo yet"), "\(none)")
        var ids: [String] = []
        for number in 0..<18 {
          let sent = try await up.client().send(.template(["message": "\(number)"]), to: "nobody")
          ids.append(try #require(sent.notificationID))
        }
        let last = try await belfry(["notification", "show", "--last", "--json"])
        #expect(last.output.contains(ids[17]), "\(last)")
        let words = try await belfry(["notification", "show", "--last"])
        #expect(words.output.contains("says          “17”"), "\(words)")
        for verb in ["show", "watch", "devices"] {
          let seen = try await belfry(["notification", verb, String(ids[3].prefix(16)), "--json"])
          #expect(seen.code != 64 && !seen.errors.contains("not found"), "\(verb): \(seen)")
        }
        // Of 18 ids with 16 first digits two begin alike.
        let digits = Dictionary(grouping: ids) { $0.prefix(1) }
        let digit = try #require(digits.first { $0.value.count > 1 }?.key)
        let many = try await belfry(["notification", "show", String(digit)])
        #expect(many.code == 1 && many.errors.contains("notifications begin with"), "\(many)")
        let unknown = try await belfry(["notification", "show", "zz"])
        #expect(unknown.code == 1, "\(unknown)")
        for id in ["", String(ids[5].prefix(7))] {
          let refused = try await belfry(["notification", "cancel", id])
          #expect(refused.code == 64 && refused.errors.contains("ID"), "\(refused)")
        }
        for words in [["show"], ["abort", "x", "--last"]] {
          let refused = try await belfry(["notification"] + words)
          #expect(refused.code == 64 && refused.errors.contains("--last"), "\(refused)")
        }
      }
    }

    @Test("the overview fits a terminal, and names every command's first word")
    func overview() async throws {
      let (code, output, _) = try await BelfryProcess.run(["--help"])
      #expect(code == 0)
      let lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 }, "\(output)")
      let all = try await BelfryProcess.run(["help", "all"]).output
      let names = all.matches(of: #/\n  ([a-z]+)[a-z -]*  /#).map { String($0.1) }
      #expect(names.count > 60)
      for name in Set(names) { #expect(output.contains(name), "\(name)") }
    }

    @Test("verbs of the REST API lead to the command's own")
    func otherVerbs() async throws {
      for words in [
        ["installation", "get"], ["installation", "put"], ["registration", "get"],
        ["operator", "remove"],
      ] {
        #expect(try await BelfryProcess.run(words + ["--help"]).code == 0, "\(words)")
      }
      #expect(
        try await BelfryProcess.run(["hub", "patch", "--help"]).output.contains("belfry hub update")
      )
    }
  }
}
