import Foundation
import HubTesting
import Testing

@Suite("The simulator")
struct SimulateTests {
  /// Without optimisation a life takes a fifth of a second: so many do for a digest. script/test lives
  /// many more, in a release build.
  private static let lives = "16"

  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Lives that broke a promise once.
  private static let found: [String] = {
    let folder = root.appending(path: "Tests/Simulation/Found").path
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { $0.hasSuffix(".plan") }.sorted().map { "\(folder)/\($0)" }
  }()

  private func simulate(
    _ words: String...
  ) async throws -> (code: Int32, output: String, errors: String) {
    let process = try BelfryProcess(
      words + ["--keep", FileManager.default.temporaryDirectory.path], program: "belfry-simulate")
    // Nothing here waits: it is slow only where the machine is busy.
    let code = try await process.exitCode(within: .seconds(600))
    return (code, process.text, process.errors)
  }

  private func digest(_ text: String) throws -> Substring {
    let line = text.split(separator: "\n").last { $0.hasPrefix("digest ") }
    return try #require(line, "\(text)")
  }

  @Test(
    "lives the same lives from the same seed, in however many processes, and others from another")
  func digests() async throws {
    async let first = simulate("--seed", "1", "--lives", Self.lives, "--jobs", "1")
    async let second = simulate("--seed", "1", "--lives", Self.lives, "--jobs", "2")
    async let third = simulate("--seed", "1001", "--lives", "4", "--jobs", "1")
    let (one, same, other) = try await (first, second, third)
    for run in [one, same, other] { #expect(run.code == 0, "\(run.output)\(run.errors)") }
    let digests = (try digest(one.output), try digest(same.output), try digest(other.output))
    #expect(digests.0 == digests.1)
    #expect(digests.0 != digests.2)
  }

  @Test("keeps every promise in lives that broke one once", arguments: found)
  func plays(_ path: String) async throws {
    let run = try await simulate("--plan", path)
    #expect(run.code == 0, "\(run.output)\(run.errors)")
  }

  @Test("has lives that broke a promise once")
  func hasPlans() { #expect(!Self.found.isEmpty) }

  @Test("has a database that keeps the contract of a store, on virtual time as well")
  func contract() async throws {
    let run = try await simulate("--contract")
    #expect(run.code == 0, "\(run.output)\(run.errors)")
  }

  @Test("draws a life as a time line")
  func timeLine() async throws {
    let run = try await simulate("--plan", try #require(Self.found.first), "--tell")
    #expect(run.output.contains("seconds  clients, services"))
    #expect(run.output.contains("machine 0"))
  }

  @Test("says in a line what it does not know")
  func badInput() async throws {
    for (words, reason) in [
      (["--live", "3"], "'--live' is unknown"),
      (["--seed"], "--seed wants a value"),
      (["--seed", "one"], "--seed wants a number"),
      (["--nodes", "6"], "--nodes wants a number from 1 to 5"),
      (["--minutes", "0"], "--minutes wants a number above 0"),
      (["--only", "kill,send"], "there is no fault 'send': they are kill,"),
      (["--plan", "/nowhere.plan"], "--plan: '/nowhere.plan' cannot be read"),
      (["--tell", "--lives", "2"], "--plan and --tell are about one life"),
      (["--shrink", "luck"], "there is no promise 'luck'"),
    ] {
      let run = try await BelfryProcess.run(words, program: "belfry-simulate")
      #expect(run.code == 64, "\(words)")
      #expect(run.errors.hasPrefix("belfry-simulate: \(reason)"), "\(run.errors)")
      #expect(run.errors.split(separator: "\n").count == 1)
    }
  }

  @Test("does not play the plan of another version")
  func otherVersion() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).plan")
    try "belfry simulation 0\nseed 1\n".write(to: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    let run = try await simulate("--plan", file.path)
    #expect(run.code == 64)
    #expect(run.errors.contains("it is of version 0, and this simulator is of version 1"))
  }
}
