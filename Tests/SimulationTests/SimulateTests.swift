import Foundation
import HubTesting
import Testing

@Suite("The simulator")
struct SimulateTests {
  /// Without optimisation a life takes a fifth of a second: so many do for a digest. script/test plays
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
      (["--seed"], "--seed needs a value"),
      (["--keep", "--tell"], "--keep needs a value"),
      (["--seed", "1", "--seed", "2"], "--seed is there twice"),
      (["--seed", "one"], "--seed needs a number from 0 to 9223372036854775807, not 'one'"),
      (["--nodes", "6"], "--nodes needs a number from 1 to 5, not '6'"),
      (["--minutes", "0"], "--minutes needs a number from 0.001 to 100000, not '0'"),
      (["--only", "kill,send"], "there is no fault 'send': they are kill,"),
      (["--only", "kill,,pause"], "there is no fault ''"),
      (
        ["--plan", "/nowhere.plan"],
        "--plan: '/nowhere.plan' cannot be read: No such file or directory"
      ),
      (["--plan", "/dev"], "--plan: '/dev' cannot be read: it is no file"),
      (["--plan", "/dev/zero"], "--plan: '/dev/zero' cannot be read: it is no file"),
      (["--tell", "--lives", "2"], "--tell is about one life"),
      (["--tell", "--first"], "--tell and --first exclude each other"),
      (["--contract", "--lives", "2"], "--contract and --lives exclude each other"),
      (["--seed", "99999999999999999999"], "--seed needs a number from 0 to 9223372036854775807"),
      (["--wanted", "luck"], "there is no promise 'luck'"),
      (["--shrink", "luck"], "there is no promise 'luck'"),
    ] {
      let run = try await BelfryProcess.run(words, program: "belfry-simulate")
      #expect(run.code == 64, "\(words)")
      #expect(run.errors.hasPrefix("belfry-simulate: \(reason)"), "\(run.errors)")
      #expect(
        run.errors.contains("; see script/simulate --help") != reason.contains("cannot be read"))
      #expect(run.errors.split(separator: "\n").count == 1)
    }
  }

  private func withPlan<Value>(
    _ text: String, _ body: (String) async throws -> Value
  ) async throws -> Value {
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).plan")
    try text.write(to: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    return try await body(file.path)
  }

  @Test("does not play the plan of another version")
  func otherVersion() async throws {
    let run = try await withPlan("belfry simulation 0\nseed 1\n") {
      try await simulate("--plan", $0)
    }
    #expect(run.code == 64)
    #expect(run.errors.contains("it is of version 0, and this simulator is of version 1"))
  }

  @Test(
    "says in which line of a plan a mistake is",
    arguments: [
      (
        "1 1 put 0 0 0 0 0",
        "put takes 6 arguments (hub, device, handle, tags, user, template), not 5"
      ),
      ("1 1 revoke 1", "revoke takes 0 arguments, not 1"),
      ("1 1 jump", "there is no act 'jump': they are put,"),
      ("1 1 put 0 0 x 0 0 0", "put: handle needs a number, not 'x'"),
      ("1 1 kill 2 100", "kill: machine is a number from 0 to 1, not 2"),
      ("1 1 kill 0 -1", "kill: ms is a number from 0 to"),
      ("1 1 createHub 1", "createHub: hub is a number from 0 to 0, not 1"),
      ("1 1 send 0 3 0 0", "send: kind is a number from 0 to 2, not 3"),
      ("1 1 lose 0 99 0 0", "lose: call is a number from 0 to"),
      ("1 1 abort 7", "abort: 7 is not the number of an earlier send, direct, batch, schedule"),
      ("1 1 erase 0 0", "erase: user is a number from 1 to 9999, not 0"),
      (
        "1 1 schedule 0 0 0 86400000",
        "a plan is of a day (86400 s) at most, and this is until 86401.000 s"
      ),
      ("1 1", "a line is 'SECONDS NUMBER ACT ARGUMENTS'"),
      ("-1 1 revoke", "SECONDS is a number from 0"),
      ("1 1 put 0 0 5000 0 0 0", "put: handle is a number from 0 to 4999, not 5000"),
      (
        "1 1 replace 0 6000",
        "replace: by is a number from 0 to 4999, not 6000, which needs platforms 4"
      ),
      ("1 1 replace 0 3", "replace: by is of the service of handle 0, and 3 is not"),
      (
        "1,5 1 revoke",
        "a line begins with SECONDS or a parameter, and '1,5' is neither; parameters are seed, nodes,"
      ),
      ("nodes 6", "nodes needs a number from 1 to 5, not '6'"),
      ("nodes", "nodes needs a number from 1 to 5"),
      ("slots 3", "slots needs a power of two: 1, 2, 4 or 8, not 3"),
      ("platforms 3", "platforms needs 2 or 4, not 3"),
      ("page 0", "page needs a number from 1"),
      ("order 4", "order needs a number from 0 to 3"),
      ("seed 2", "seed is there already"),
    ])
  func badPlan(_ line: String, _ reason: String) async throws {
    let run = try await withPlan("belfry simulation 1\r\nseed 1\r\n\(line)\r\n") {
      try await simulate("--plan", $0)
    }
    #expect(run.code == 64)
    #expect(run.errors.contains(".plan: line 3: \(reason)"), "\(run.errors)")
    #expect(!run.errors.contains("--help"))
    #expect(run.errors.split(separator: "\n").count == 1)
  }

  @Test("does not play a plan with pages that no node can hold, or without an end")
  func unlivable() async throws {
    let run = try await withPlan("belfry simulation 1\nseed 1\nheld 4\npage 5\n") {
      try await simulate("--plan", $0)
    }
    #expect(run.code == 64)
    #expect(run.errors.contains("line 4: held is at least page, which is 5"), "\(run.errors)")
    let large = try await withPlan(String(repeating: " ", count: 5_000_000)) {
      try await simulate("--plan", $0)
    }
    #expect(large.code == 64)
    #expect(large.errors.contains("it has more than 4 MB, and is no plan"), "\(large.errors)")
  }

  @Test("does not play a plan with other words about which life it is, or two lines of one number")
  func excluded() async throws {
    let plan = "belfry simulation 1\nseed 1\n1 1 revoke\n"
    let run = try await withPlan(plan) { try await simulate("--plan", $0, "--seed", "2") }
    #expect(run.code == 64)
    #expect(run.errors.contains("--plan and --seed exclude each other"), "\(run.errors)")
    let first = try await withPlan(plan) { try await simulate("--plan", $0, "--first") }
    #expect(first.code == 64)
    #expect(first.errors.contains("--plan and --first exclude each other"), "\(first.errors)")
    let twice = try await withPlan(plan + "2 1 revoke\n") { try await simulate("--plan", $0) }
    #expect(twice.code == 64)
    #expect(twice.errors.contains("line 4: there is a line with the number 1 already"))
  }

  @Test("names the lines of faults that had nothing to strike")
  func neverStruck() async throws {
    let plan = """
      belfry simulation 1
      seed 1
      1 3 lose 0 21 900 0
      1 4 kill 1 9000
      2 5 kill 1 100

      """
    let run = try await withPlan(plan) { try await simulate("--plan", $0) }
    #expect(run.code == 0, "\(run.output)\(run.errors)")
    #expect(run.output.contains("never struck: line 3 (lose), line 5 (kill)"), "\(run.output)")
  }

  @Test("says that a life does not break the promise for which it is to be shortened")
  func nothingToShorten() async throws {
    let run = try await simulate("--shrink", "erased", "--seed", "1", "--short")
    #expect(run.code == 70)
    #expect(
      run.errors
        == "belfry-simulate: the life of seed 1 does not break erased, so there is nothing "
        + "to shorten\n")
  }

  @Test("plays the plans that it draws")
  func playsDrawn() async throws {
    let told = try await simulate("--seed", "5", "--tell")
    let end = try #require(told.output.firstRange(of: "\n\n"))
    let plan = told.output.prefix(through: end.lowerBound)
    let played = try await withPlan(String(plan)) { try await simulate("--plan", $0) }
    #expect(played.code == told.code, "\(played.output)\(played.errors)")
    #expect(try digest(played.output) == digest(told.output))
  }

  @Test("says before its first life that plans cannot be kept")
  func keeps() async throws {
    let run = try await BelfryProcess.run(
      ["--lives", "1", "--keep", "/dev/null/plans"], program: "belfry-simulate")
    #expect(run.code == 70)
    #expect(run.errors.contains("--keep: '/dev/null/plans' cannot be written: Not a directory"))
    #expect(run.output.isEmpty)
  }
}
