import Cryptography
import Foundation
import HubTesting
import Testing

@testable import belfry

extension CommandLineSuite {
  @Suite(
    "In a data directory of another user",
    .enabled(if: geteuid() == 0, "only root can become another user, and give files away"))
  struct OtherUserTests {
    /// Nobody's in particular.
    private static let (owner, stranger): (uid_t, uid_t) = (4_242, 4_243)

    private let scratch: Scratch
    private var data: String { scratch.path + "/data" }

    /// A hub whose files belong to ``owner``.
    init() async throws {
      scratch = try Scratch()
      #expect(try await BelfryProcess.run(["hub", "create", "news", "--data", data]).code == 0)
      for name in try FileManager.default.contentsOfDirectory(atPath: data) + ["."] {
        #expect(chown(data + "/" + name, Self.owner, Self.owner) == 0)
      }
    }

    private func owners() throws -> [String: uid_t] {
      var owners: [String: uid_t] = [:]
      for name in try FileManager.default.subpathsOfDirectory(atPath: data) {
        var status = stat()
        #expect(lstat(data + "/" + name, &status) == 0)
        owners[name] = status.st_uid
      }
      return owners
    }

    @Test("who may not look is told whom to run as, by every command")
    func closed() async throws {
      let file = scratch.path + "/backup"
      chmod(scratch.path, 0o777)
      for words in [
        ["hub", "list"], ["check"], ["backup", file], ["key", "list"], ["serve"], ["health"],
        ["top"],
        ["operator", "list"], ["restore", file], ["export", file],
      ] {
        let run = try await BelfryProcess.run(words + ["--data", data], as: Self.stranger)
        #expect(
          run.code == 64
            && run.errors.contains("\(data) cannot be read by this user. It belongs to")
            && run.errors.contains("sudo -u '#\(Self.owner)' belfry"), "\(words): \(run)")
      }
      let move = ["move", "--from", data, "--to", "postgresql:///none"]
      #expect(
        try await BelfryProcess.run(move, as: Self.stranger).errors.contains("cannot be read by"))
      // The one that is here by its name, and one behind a closed directory.
      #expect(rename(data, scratch.path + "/belfry-data") == 0)
      let here = try await BelfryProcess.run(["hub", "list"], in: scratch.path, as: Self.stranger)
      #expect(here.errors.contains("belfry-data cannot be read by this user"), "\(here)")
      let inner = try await BelfryProcess.run(
        ["check", "--data", scratch.path + "/belfry-data/inner"], as: Self.stranger)
      #expect(inner.errors.contains("sudo -u '#\(Self.owner)' belfry"), "\(inner)")
    }

    @Test("its owner works, and learns what to do with a file that root has left")
    func left() async throws {
      let words = ["hub", "list", "--data", data]
      #expect(try await BelfryProcess.run(words, as: Self.owner).code == 0)
      #expect(chown(data + "/belfry.sqlite", 0, 0) == 0)
      let run = try await BelfryProcess.run(words, as: Self.owner)
      #expect(
        run.code == 64
          && run.errors.contains("sudo chown --reference=\(data) \(data)/belfry.sqlite"), "\(run)")
    }

    @Test("root is refused before it makes anything; it may look")
    func root() async throws {
      let before = try owners()
      for words in [
        ["hub", "list"], ["hub", "create", "more"], ["key", "rotate"], ["serve"],
        ["backup", scratch.path + "/backup"], ["operator", "list"],
      ] {
        let run = try await BelfryProcess.run(words + ["--data", data])
        #expect(
          run.code == 64 && run.errors.contains("\(data) belongs to #\(Self.owner)")
            && run.errors.contains("sudo -u '#\(Self.owner)' belfry"), "\(words): \(run)")
      }
      #expect(try owners() == before)
      let check = try await BelfryProcess.run(["check", "--data", data])
      #expect(check.output.contains("the master key opens"), "\(check)")
      #expect(try owners().values.allSatisfy { $0 == Self.owner })
    }

    @Test("root restores for the directory's owner, and gives no linked file away")
    func restored() async throws {
      let file = scratch.path + "/backup"
      chmod(scratch.path, 0o777)
      let made = try await BelfryProcess.run(["backup", file, "--data", data], as: Self.owner)
      #expect(made.code == 0, "\(made)")
      let new = try DataDirectory.make(at: scratch.path + "/new").path
      #expect(chown(new, Self.owner, Self.owner) == 0)
      let victim = try scratch.file("victim", "of root")
      // Room is looked for while the lock is held: what the owner could do at that moment.
      let context = CommandContext(
        environment: [:], print: { _ in }, note: { _ in },
        room: { _ in
          unlink(new + "/lock")
          for name in ["lock", "master.key"] { #expect(symlink(victim, new + "/" + name) == 0) }
          return 1 << 40
        })
      _ = try Restore(file: file, context: context, password: { "" }).restore(to: new)
      var status = stat()
      #expect(lstat(victim, &status) == 0 && status.st_uid == 0)
      #expect(try String(contentsOfFile: victim, encoding: .utf8) == "of root")
      for name in try FileManager.default.contentsOfDirectory(atPath: new) {
        #expect(lstat(new + "/" + name, &status) == 0)
        #expect(status.st_uid == Self.owner, "\(name)")
      }
      let list = try await BelfryProcess.run(["hub", "list", "--data", new], as: Self.owner)
      #expect(list.output.contains("news"), "\(list)")
    }
  }
}
