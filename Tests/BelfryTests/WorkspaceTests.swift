import Foundation
import HubTesting
import Testing

@testable import belfry

extension CommandLineSuite {
  @Suite("Directories of stacks without --data")
  struct WorkspaceTests {
    /// Makes a directory; its lock is some minutes old.
    private func leave(_ name: String, in scratch: Scratch, lock: Bool = true) throws -> String {
      let path = scratch.path + "/" + name
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: false)
      try Data("a key".utf8).write(to: URL(fileURLWithPath: path + "/ca-key.pem"))
      if lock {
        try Data().write(to: URL(fileURLWithPath: path + "/lock"))
        try age(path)
      }
      return path
    }

    private func age(_ path: String) throws {
      try FileManager.default.setAttributes(
        [.modificationDate: Date().addingTimeInterval(-300)], ofItemAtPath: path + "/lock")
    }

    private func isThere(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    @Test("a directory is claimed once, also when its lock is deleted")
    func deletedLock() throws {
      let scratch = try Scratch()
      let claim = try DirectoryClaim(file: scratch.path + "/lock")
      try FileManager.default.removeItem(atPath: scratch.path + "/lock")
      #expect(throws: CommandFailure.self) { try DirectoryClaim(file: scratch.path + "/lock") }
      withExtendedLifetime(claim) {}
    }

    @Test("only abandoned ones of the own form are removed")
    func abandoned() throws {
      let scratch = try Scratch()
      let name = { "belfry-" + UUID().uuidString.lowercased() }
      let abandoned = try leave(name(), in: scratch)
      let claimed = try leave(name(), in: scratch)
      let claim = try DirectoryClaim(file: claimed + "/lock")
      let fresh = try leave(name(), in: scratch)
      try Data().write(to: URL(fileURLWithPath: fresh + "/lock"))
      let linked = scratch.path + "/" + name()
      let others = [
        try leave(name(), in: scratch, lock: false),
        try leave(name().uppercased(), in: scratch),
        try leave("belfry-" + UUID().uuidString, in: scratch),
        try leave(name() + "0", in: scratch), try leave("x" + name(), in: scratch),
        try leave("belfry-data", in: scratch), try leave("belfry", in: scratch),
      ]
      try FileManager.default.createSymbolicLink(
        atPath: linked, withDestinationPath: others[6])
      Workspace.removeAbandoned(in: scratch.path)
      #expect(!isThere(abandoned))
      for path in [claimed, fresh, linked] + others { #expect(isThere(path), "\(path)") }
      withExtendedLifetime(claim) {}
    }

    @Test(
      "what a killed one has left goes when the next starts",
      arguments: [["up", "--json", "--port", "0"], ["emulator", "--json", "--port", "0"]])
    func killed(words: [String]) async throws {
      let scratch = try Scratch()
      let environment = ["TMPDIR": scratch.path]
      let contents = { try FileManager.default.contentsOfDirectory(atPath: scratch.path) }
      let killed = try BelfryProcess(words, environment: environment)
      _ = try await killed.line { $0.hasPrefix("{") }
      killed.signal(SIGKILL)
      try await killed.exitCode()
      let left = try #require(try contents().first)
      try age(scratch.path + "/" + left)
      let next = try BelfryProcess(words, environment: environment)
      _ = try await next.line { $0.hasPrefix("{") }
      let now = try contents()
      #expect(now.count == 1 && now.first != left)
      #expect(try await next.end() == 0)
      #expect(try contents() == [])
    }
  }
}
