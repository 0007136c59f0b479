import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import belfry

extension CommandLineSuite {
  @Suite(
    "belfry move",
    .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
  struct MoveTests {
    private func run(_ words: String...) async throws -> (Int32, String, String) {
      try await BelfryProcess.run(["move"] + words)
    }

    /// What a connection string has beside the address.
    private func keys(_ up: UpLine) -> String {
      up.hub.connectionStrings.full.replacing(/Endpoint=[^;]*;/, with: "")
    }

    @Test(
      "a hub that was moved sends under the same key to the same device, and what was scheduled")
    func moved() async throws {
      let scratch = try Scratch()
      let (from, node) = (scratch.path + "/from", scratch.path + "/node")
      let database = try PostgresServer.shared().makeDatabase()
      let emulator = try BelfryProcess(["emulator", "--json", "--port", "0"])
      let line = try await emulator.line { $0.hasPrefix("{") }
      let stage = try JSONDecoder().decode(EmulatorLine.self, from: Data(line.utf8))
      let control = Control(base: stage.control)
      let phone = try await control.phones(1)[0]
      func send(_ up: UpLine, _ more: String...) async throws {
        let (code, _, errors) = try await BelfryProcess.run(
          [
            "send", "--apns", #"{"aps":{"alert":"hi"}}"#, "--tags", "a", "--connection",
            up.hub.connectionStrings.full, "--hub", up.hub.name,
          ] + more)
        #expect(code == 0, "\(errors)")
      }
      let (first, before) = try await BelfryProcess.up([
        "--data", from, "--emulator", stage.control,
      ])
      try await before.client().createOrReplace(
        Installation(
          installationID: "i-1", platform: .apns, pushChannel: .handle(phone.token), tags: ["a"]))
      let (served, _, complaint) = try await run("--from", from, "--to", database)
      #expect(served == 69 && complaint.contains("stop it first"), "\(complaint)")
      try await send(before, "--at", "+8s")
      #expect(try await first.end() == 0)
      let (dry, counts, _) = try await run("--from", from, "--to", database, "--dry-run")
      #expect(dry == 0 && counts.contains("nothing was changed"))
      let (code, output, errors) = try await run("--from", from, "--to", database)
      #expect(code == 0 && output.contains("copy \(from)/master.key"), "\(errors)")
      let closed = try await BelfryProcess.run(["serve", "--port", "0", "--data", from])
      #expect(
        closed.code == 64 && closed.errors.contains("was moved to \(database) at")
          && closed.errors.contains("remove \(from)/moved"), "\(closed)")
      #expect(
        try FileManager.default.attributesOfItem(atPath: from + "/moved")[.posixPermissions]
          as? Int == 0o600)
      let (again, _, fault) = try await run("--from", from, "--to", database)
      #expect(
        again == 1 && fault.contains("this move is done: \(from) was moved to \(database) at")
          && fault.contains("Next: copy"), "\(fault)")
      let stranger = scratch.path + "/stranger"
      _ = try await BelfryProcess.run(["hub", "create", "news", "--data", stranger])
      let (foreign, _, reason) = try await run("--from", stranger, "--to", database)
      #expect(foreign == 64 && reason.contains("another master key"), "\(reason)")
      let keyless = scratch.path + "/keyless"
      let (locked, _, refusal) = try await run("--from", database, "--to", keyless)
      #expect(locked == 64 && refusal.contains("\(keyless)/master.key"), "\(refusal)")
      #expect(!FileManager.default.fileExists(atPath: keyless))
      try FileManager.default.createDirectory(atPath: node, withIntermediateDirectories: true)
      try FileManager.default.copyItem(
        atPath: from + "/master.key", toPath: node + "/master.key")
      let (second, after) = try await BelfryProcess.up([
        "--data", node, "--database", database, "--emulator", stage.control,
      ])
      #expect(keys(after) == keys(before))
      try await send(after, "--wait")
      let limit = ContinuousClock.now + .seconds(120)
      while try await control.delivered(to: phone.id).count < 2, ContinuousClock.now < limit {
        try await Task.sleep(for: .milliseconds(100))
      }
      #expect(try await control.delivered(to: phone.id).count == 2)
      let back = scratch.path + "/back"
      let (early, _, living) = try await run("--from", node, "--to", back)
      #expect(early != 0 && living.contains("servers work on the database"), "\(living)")
      #expect(!FileManager.default.fileExists(atPath: back))
      #expect(try await second.end() == 0)
      let stale = scratch.path + "/stale"
      _ = try DataDirectory.make(at: stale)
      _ = try scratch.file("stale/master.key", String(repeating: "ab", count: 32))
      let (refused, _, other) = try await run("--from", node, "--to", stale)
      #expect(refused == 64 && other.contains("another master key"), "\(other)")
      #expect(!FileManager.default.fileExists(atPath: stale + "/belfry.sqlite"))
      for words in [[], ["--dry-run"]] {
        let into = try await BelfryProcess.run(["move", "--from", node, "--to", from] + words)
        #expect(into.code == 1 && into.errors.contains("not empty"), "\(into)")
        #expect(DataDirectory(path: from).moved != nil, "the note stays")
      }
      // And back, from the directory of the node; what an earlier hub left there counts no more.
      _ = try DataDirectory.make(at: back)
      try DataDirectory(path: back).setMoved("to elsewhere")
      let (returned, json, problem) = try await run("--from", node, "--to", back, "--json")
      #expect(returned == 0 && json.contains(#""table":"registration""#), "\(problem)")
      let (twice, _, end) = try await run("--from", node, "--to", back)
      #expect(twice == 1 && end.contains("this move is done"), "\(end)")
      let shut = try await BelfryProcess.run(["serve", "--port", "0", "--data", node])
      #expect(
        shut.code == 64 && shut.errors.contains("was moved to \(back) on ")
          && shut.errors.contains("`DROP TABLE moved`"), "\(shut)")
      let (third, file) = try await BelfryProcess.up([
        "--data", back, "--emulator", stage.control,
      ])
      #expect(keys(file) == keys(before))
      try await send(file, "--wait")
      #expect(try await control.delivered(to: phone.id).count == 3)
      #expect(try await third.end() == 0)
      // The first copy again, by who says so.
      try FileManager.default.removeItem(atPath: from + "/moved")
      let fourth = try BelfryProcess(["serve", "--port", "0", "--data", from])
      _ = try await fourth.note { $0.contains("serves http") }
      #expect(try await fourth.end() == 0)
      #expect(try await emulator.end() == 0)
    }

    @Test("words that make no sense are told so, before anything is made")
    func words() async throws {
      let scratch = try Scratch()
      let (one, two) = (scratch.path + "/one", scratch.path + "/two")
      let (made, _, _) = try await BelfryProcess.run(["hub", "create", "news", "--data", one])
      #expect(made == 0)
      let cases: [(from: String, to: String, code: Int32, words: String)] = [
        (two, "postgresql:///x", 64, "yet. Name its data directory with --from DIR"),
        (one, two, 64, "both ends are files"),
        ("postgresql:///x", "postgresql:///y", 64, "pg_dump"),
        (one, "postgresql://a:geheim@127.0.0.1/x", 64, "PGPASSFILE"),
        (one, "postgresql://db:port:x/%zz", 64, "cannot be read as the address"),
        (one, "postgresql://belfry@127.0.0.1:1/belfry", 69, "check host and port"),
      ]
      for item in cases {
        let (code, _, errors) = try await run("--from", item.from, "--to", item.to)
        #expect(code == item.code && errors.contains(item.words), "\(errors)")
        #expect(!errors.contains("geheim"))
      }
      #expect(!FileManager.default.fileExists(atPath: two))
      let (none, _, errors) = try await run()
      #expect(none == 64 && errors.contains("--from and --to"))
    }
  }
}
