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

    @Test("what somebody else has left in the working directory is not taken unless it is named")
    func foreign() async throws {
      chmod(scratch.path, 0o755)
      #expect(rename(data, scratch.path + "/belfry-data") == 0)
      let directory = try await BelfryProcess.run(["check"], in: scratch.path)
      #expect(
        directory.code == 64
          && directory.errors.contains("./belfry-data belongs to another user"), "\(directory)")
      let file = try scratch.file("belfry.json", "{}")
      let link = scratch.path + "/elsewhere"
      #expect(mkdir(link, 0o755) == 0)
      #expect(symlink(file, link + "/belfry.json") == 0)
      #expect(lchown(link + "/belfry.json", Self.owner, Self.owner) == 0)
      let linked = try await BelfryProcess.run(["hub", "list"], in: link)
      #expect(
        linked.code == 64 && linked.errors.contains("./belfry.json belongs to another user"),
        "\(linked)")
    }

    @Test("root that looks does so as the directory's owner: no link leads it to files of its own")
    func looks() async throws {
      chmod(scratch.path, 0o755)
      let secret = try scratch.file("secret", "http://secret-of-root:1")
      chmod(secret, 0o600)
      for name in ["address", "database"] {
        #expect(symlink(secret, data + "/" + name) == 0)
        for command in ["check", "health"] {
          let run = try await BelfryProcess.run([command, "--data", data])
          #expect(
            !(run.output + run.errors).contains("secret-of-root"), "\(command), \(name): \(run)")
        }
      }
    }

    @Test("root restores as the directory's owner, with a key that root alone may read")
    func restored() async throws {
      let file = scratch.path + "/backup"
      chmod(scratch.path, 0o777)
      let made = try await BelfryProcess.run(
        ["backup", file, "--without-master-key", "--data", data], as: Self.owner)
      #expect(made.code == 0, "\(made)")
      chmod(scratch.path, 0o755)
      let key = scratch.path + "/key"
      try FileManager.default.copyItem(atPath: data + "/master.key", toPath: key)
      for name in ["backup", "key"] { #expect(chown(scratch.path + "/" + name, 0, 0) == 0) }
      let home = try DataDirectory.make(at: scratch.path + "/home").path
      #expect(chown(home, Self.owner, Self.owner) == 0)
      func restore(to path: String) async throws -> (code: Int32, output: String, errors: String) {
        try await BelfryProcess.run(["restore", file, "--data", path, "--master-key", key])
      }
      // One that is there, with what its owner has planted, and one that is made.
      let victim = try DataDirectory.make(at: scratch.path + "/victim").path
      _ = try scratch.file("victim/master.key", "of root")
      #expect(mkdir(home + "/there", 0o700) == 0)
      #expect(chown(home + "/there", Self.owner, Self.owner) == 0)
      #expect(symlink(victim, home + "/there/restore.part") == 0)
      for name in ["there", "new"] {
        let run = try await restore(to: home + "/" + name)
        #expect(run.code == 0, "\(run)")
        let list = try await BelfryProcess.run(
          ["hub", "list", "--data", home + "/" + name], as: Self.owner)
        #expect(list.output.contains("news"), "\(list)")
      }
      for name in try FileManager.default.subpathsOfDirectory(atPath: home) {
        var status = stat()
        #expect(lstat(home + "/" + name, &status) == 0 && status.st_uid == Self.owner, "\(name)")
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: victim) == ["master.key"])
      #expect(try String(contentsOfFile: victim + "/master.key", encoding: .utf8) == "of root")
      // Where its owner may not write, root does not.
      #expect(mkdir(home + "/closed", 0o500) == 0)
      #expect(chown(home + "/closed", Self.owner, Self.owner) == 0)
      let refused = try await restore(to: home + "/closed")
      #expect(refused.code == 64, "\(refused)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: home + "/closed") == [])
    }
  }
}
