import Cryptography
import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import belfry

extension CommandLineSuite {
  @Suite("A master key is replaced")
  struct KeyRotationTests {
    let scratch: Scratch
    private var data: String { scratch.path + "/data" }
    private var keyFile: String { data + "/master.key" }

    init() throws { scratch = try Scratch() }

    private func open(_ masterKey: String? = nil) async throws -> HubRuntime {
      var options = HubRuntime.Options(data: try .make(at: data))
      options.masterKey = masterKey
      return try await HubRuntime.open(options)
    }

    private func ids() throws -> [String] { try MasterKeyRing(file: keyFile).ids }

    private struct Killed: Error {}

    /// Rotates until `limit` steps are done, as if it were killed then.
    /// - Returns: The steps.
    private func rotate(
      killedAfter limit: Int = .max, finishing: Bool = false
    ) async throws -> [KeyRotation.Step] {
      let runtime = try await open()
      nonisolated(unsafe) var steps: [KeyRotation.Step] = []  // of this task alone
      let rotation = KeyRotation(
        keys: runtime.keys, store: runtime.service.store, data: runtime.data, isShared: false,
        report: { step in
          steps.append(step)
          if steps.count == limit { throw Killed() }
        })
      do { _ = try await rotation.run(finishing: finishing) } catch is Killed {}
      await runtime.stop(within: .zero)
      return steps
    }

    private func belfry(
      _ words: [String], _ environment: [String: String] = [:]
    ) async throws -> (code: Int32, output: String, errors: String) {
      try await BelfryProcess.run(words + ["--data", data], environment: environment)
    }

    @Test("and who is killed after any step goes on from there")
    func killed() async throws {
      let runtime = try await open()
      let key = Data(repeating: 7, count: 32).base64EncodedString()
      let policies = (0..<12).map {
        AccessPolicy(
          name: "p-\($0)", rights: $0 == 0 ? .all : .send, primaryKey: key, secondaryKey: key,
          createdAt: Date(), modifiedAt: Date())
      }
      // More than go into one transaction.
      var hubs: [Hub.ID] = []
      for name in ["a", "b", "c", "d", "e"] {
        hubs.append(
          try await runtime.service.store.createHub(
            named: name, registrationTTL: nil, policies: policies, at: Date()
          ).id)
      }
      let hub = hubs[4]
      let wanted = try await runtime.service.store.accessPolicies(hub: hub)
      await runtime.stop(within: .zero)
      var old = try ids()[0]
      var limit = 1
      while true {
        let begun = try await rotate(killedAfter: limit)
        if case .putAside = begun.last, begun.count < limit { break }
        #expect(begun.count == limit)
        #expect(try ids().last == old || begun.count > 5, "the old key is there to the end")
        let rest = try await rotate(finishing: true)
        #expect(!rest.contains { if case .made = $0 { true } else { false } })
        let new = try ids()
        #expect(new.count == 1 && new[0] != old)
        #expect(try MasterKey.load(file: "\(keyFile).\(old)").id == old)
        let after = try await open()
        #expect(try await after.service.store.accessPolicies(hub: hub) == wanted)
        let values = try await after.service.store.sealedValues()
        #expect(Array(values.counts.keys) == new && values.unopened.isEmpty)
        await after.stop(within: .zero)
        old = new[0]
        limit += 1
      }
      #expect(limit > 6)
    }

    @Test("while a server sends, which reads it by itself and starts with it alone")
    func online() async throws {
      let (server, up) = try await BelfryProcess.up(["--data", data])
      let control = Control(base: up.emulator.control)
      let phone = try await control.phones(1)[0]
      try await up.client().createOrReplace(
        Installation(
          installationID: "i-1", platform: .apns, pushChannel: .handle(phone.token), tags: ["a"]))
      func send(_ count: Int) async throws {
        let (code, _, errors) = try await belfry(
          ["send", "--apns", #"{"aps":{"alert":"hi"}}"#, "--tags", "a", "--wait"]
            + ["--hub", up.hub.name])
        #expect(code == 0, "\(errors)")
        #expect(try await control.delivered(to: phone.id).count == count)
      }
      let old = try ids()[0]
      try await send(1)
      let begun = try await rotate(killedAfter: 2)
      #expect(begun.count == 2)
      // The credential is under the old key, this hub's policies are under the new one.
      let made = try await belfry(["hub", "create", "late"])
      #expect(made.code == 0, "\(made.errors)")
      try await send(2)
      let list = try await belfry(["key", "list"])
      #expect(list.output.contains("in force") && list.output.contains("opens"), "\(list)")
      #expect(list.output.contains(old) && list.errors.contains("--finish"))
      let (code, output, errors) = try await belfry(["key", "rotate"])
      #expect(code == 0 && output.hasPrefix("the master key is "), "\(errors)")
      #expect(errors.contains("the old key \(old) is in \(keyFile).\(old)"), "\(errors)")
      let text = try String(contentsOfFile: keyFile, encoding: .utf8).dropLast()
      #expect(!(output + errors + list.output + server.errors).contains(text), "no key is shown")
      try await send(3)
      #expect(try await server.end() == 0)
      let late = try await belfry(["policy", "list", "--hub", "late"])
      #expect(late.code == 0, "\(late.errors)")
      // The old key alone opens nothing now.
      try FileManager.default.removeItem(atPath: keyFile)
      try FileManager.default.copyItem(atPath: "\(keyFile).\(old)", toPath: keyFile)
      let refused = try await belfry(["hub", "list"])
      #expect(refused.code == 1 && refused.errors.contains("master.key"), "\(refused.errors)")
    }

    @Test("of the environment by who has set it, and not under a server that lacks the new one")
    func environment() async throws {
      func key(_ byte: UInt8) -> String { Data(repeating: byte, count: 32).base64EncodedString() }
      let variable = "BELFRY_MASTER_KEY"
      let (old, both) = ([variable: key(1)], [variable: key(2) + "," + key(1)])
      #expect(try await belfry(["hub", "create", "news"], old).code == 0)
      let one = try await belfry(["key", "rotate"], old)
      #expect(one.code == 64 && one.errors.contains("NEW,OLD"), "\(one.errors)")
      let server = try BelfryProcess(
        ["serve", "--port", "0", "--data", data], environment: old)
      _ = try await server.note { $0.contains("serves http") }
      let runtime = try await open(both[variable])
      let rotation = KeyRotation(
        keys: runtime.keys, store: runtime.service.store, data: runtime.data, isShared: false,
        patience: .zero, report: { _ in })
      let refusal = await #expect(throws: CommandFailure.self) {
        try await rotation.run(finishing: false)
      }
      #expect("\(refusal as Any)".contains("do not have the new key"))
      await runtime.stop(within: .zero)
      #expect(try await server.end() == 0)
      let two = try await belfry(["key", "rotate"], both)
      #expect(two.code == 0, "\(two.errors)")
      #expect(try await belfry(["policy", "list", "--hub", "news"], [variable: key(2)]).code == 0)
      #expect(try await belfry(["hub", "list"], old).code == 1)
      #expect(!FileManager.default.fileExists(atPath: keyFile))
    }

    @Test("not where a value opens with no key, which is named, and not by two at once")
    func refusals() async throws {
      #expect(try await belfry(["hub", "create", "news"]).code == 0)
      var lock: MasterKeyRing.Lock? = try MasterKeyRing(file: keyFile).lock()
      let second = try await belfry(["key", "rotate"])
      #expect(second.code == 64 && second.errors.contains("Another process"), "\(second.errors)")
      #expect(lock != nil)
      lock = nil
      let nothing = try await belfry(["key", "rotate", "--finish"])
      #expect(nothing.code == 1 && nothing.errors.contains("nothing to finish"))
      // A value that was sealed under a key that is lost.
      let runtime = try await open()
      let lost = try MasterKey()
      let ring = runtime.keys
      let before = ring.all
      try ring.replace(with: [lost] + before)
      let was = try await runtime.service.store.sealingKey()
      #expect(try await runtime.service.store.changeSealingKey(to: lost.id).isEmpty)
      _ = try await runtime.service.createHub(named: "lost", registrationTTL: nil, policies: [])
      #expect(try await runtime.service.store.changeSealingKey(to: was).isEmpty)
      try ring.replace(with: before)
      await runtime.stop(within: .zero)
      let text = try String(contentsOfFile: keyFile, encoding: .utf8)
      let broken = try await belfry(["key", "rotate"])
      #expect(broken.code == 1 && broken.errors.contains("access_policy/"), "\(broken.errors)")
      #expect(try String(contentsOfFile: keyFile, encoding: .utf8) == text)
    }

    @Test(
      "on several nodes once each has the new one",
      .enabled(if: PostgresServer.isInstalled, "PostgreSQL's server is not installed"))
    func nodes() async throws {
      let database = try PostgresServer.shared().makeDatabase()
      let other = scratch.path + "/other"
      func serve(_ data: String) async throws -> BelfryProcess {
        let server = try BelfryProcess([
          "serve", "--port", "0", "--data", data, "--database", database,
        ])
        _ = try await server.note { $0.contains("serves http") }
        return server
      }
      let one = try await serve(data)
      try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: true)
      func copyKey() throws {
        try? FileManager.default.removeItem(atPath: other + "/master.key")
        try FileManager.default.copyItem(atPath: keyFile, toPath: other + "/master.key")
      }
      try copyKey()
      let two = try await serve(other)
      #expect(try await belfry(["hub", "create", "news"]).code == 0)
      let old = try ids()[0]
      let refused = try await belfry(["key", "rotate"])
      #expect(refused.code == 1 && refused.errors.contains("Copy \(keyFile)"), "\(refused.errors)")
      #expect(try ids().count == 2 && ids()[1] == old)
      try copyKey()
      let done = try await belfry(["key", "rotate"])
      #expect(done.code == 0, "\(done.errors)")
      // The other node still has both, and ends the rotation for itself.
      let finished = try await BelfryProcess.run(["key", "rotate", "--finish", "--data", other])
      #expect(finished.code == 0, "\(finished.errors)")
      #expect(try MasterKeyRing(file: other + "/master.key").ids == ids())
      #expect(try await two.end() == 0)
      // One that comes with the old key alone is told so.
      try FileManager.default.removeItem(atPath: other + "/master.key")
      try FileManager.default.copyItem(
        atPath: "\(keyFile).\(old)", toPath: other + "/master.key")
      let late = try await BelfryProcess.run([
        "serve", "--port", "0", "--data", other, "--database", database,
      ])
      #expect(late.code == 64 && late.errors.contains("copy master.key"), "\(late.errors)")
      #expect(try await one.end() == 0)
    }
  }
}
