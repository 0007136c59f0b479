import Foundation
import HubSimulation

/// Prints at once, to a pipe as well. A reader that has gone is no reason to end within a life.
func say(_ text: String, terminator: String = "\n") {
  try? FileHandle.standardOutput.write(contentsOf: Data("\(text)\(terminator)".utf8))
}

/// The actions of the program, one for each way in which it is called.
enum Program {
  private static let hashing = "SWIFT_DETERMINISTIC_HASHING"

  /// Sets and dictionaries have another order in each process, unless a variable was there when it
  /// began: so it begins again.
  static func isolateHashing() {
    guard getenv(hashing) == nil else { return }
    setenv(hashing, "1", 1)
    execv(path, CommandLine.unsafeArgv)
    fail("\(path) cannot be started again: \(String(cString: strerror(errno)))")
  }

  static var path: String { Bundle.main.executablePath ?? CommandLine.arguments[0] }

  static func fail(_ reason: String) -> Never {
    FileHandle.standardError.write(Data("belfry-simulate: \(reason)\n".utf8))
    exit(Exit.failed.rawValue)
  }

  static func run(_ options: Options) -> Exit {
    switch options.action {
    case .help:
      say(Options.usage, terminator: "")
      return .nothingFound
    case .run:
      makeFolder(options.folder)
      return WorkerPool(options).run()
    case .worker: return Worker(options).run()
    case .contract: return ContractRun.run()
    case .play: return play(options)
    case .shrink(let promise):
      makeFolder(options.folder)
      return shrink(options, promise)
    }
  }

  /// Makes the folder of --keep before the first life, so that nothing that is found goes lost.
  private static func makeFolder(_ path: String) {
    var made = path.hasPrefix("/") ? "/" : ""
    for name in path.split(separator: "/") {
      made += "\(name)/"
      if mkdir(made, 0o777) != 0, errno != EEXIST { refuse(path) }
    }
    let folder = open(path, O_RDONLY | O_DIRECTORY)
    if folder < 0 { refuse(path) }
    close(folder)
    if access(path, W_OK | X_OK) != 0 { refuse(path) }
  }

  private static func refuse(_ path: String) -> Never {
    fail("--keep: '\(path)' cannot be written: \(String(cString: strerror(errno)))")
  }

  /// Takes the tasks of this process; from then on it may live.
  static func beginLiving() {
    TaskHook.install()
    Tripwire.prove()
  }

  /// Lives a plan in this process.
  static func live(_ plan: Plan, isTelling: Bool = false) -> Life {
    let life = Life(plan, isTelling: isTelling)
    TaskHook.within(life.world) { life.live() }
    return life
  }

  private static func play(_ options: Options) -> Exit {
    beginLiving()
    let plan = options.onePlan
    let life = live(plan, isTelling: options.isTelling)
    if options.isTelling { say("\(plan)\n\(TimeLine(life))") }
    var printed: Set<Finding> = []
    for finding in life.findings where printed.insert(finding).inserted {
      say("finding: \(finding.promise.rawValue) seed \(plan.seed): \(finding.text)")
    }
    say(
      "seed \(plan.seed): \(Int(life.world.seconds)) s of virtual time, \(life.world.steps) steps, "
        + "\(life.findings.isEmpty ? "nothing found" : "a promise is broken")")
    if options.plan != nil, !life.neverStruck.isEmpty {
      let lines = life.neverStruck.map { "line \($0.id) (\($0.act.rawValue))" }
      say("never struck: \(lines.joined(separator: ", "))")
    }
    say("digest \(Report.hex(life.world.digest))")
    return life.findings.isEmpty ? .nothingFound : .found
  }

  private static func shrink(_ options: Options, _ promise: Promise) -> Exit {
    beginLiving()
    let end = Date(timeIntervalSinceNow: 60)
    var shrinker = Shrinker(
      options.onePlan, isOver: { Date() > end },
      // A plan that cannot be played again is of no use.
      breaks: { plan in
        plan.isSound && live(plan).findings.contains { $0.promise == promise }
      })
    let before = shrinker.plan.lines.count
    guard shrinker.shrink() else {
      fail(
        "the life of seed \(shrinker.plan.seed) does not break \(promise.rawValue), so there is "
          + "nothing to shorten")
    }
    let plan = shrinker.plan
    let life = live(plan, isTelling: true)
    let comment = TimeLine(life).description.split(separator: "\n").map { "# \($0)\n" }.joined()
    say(
      "seed \(plan.seed): shrunk from \(Texts.count(before, "line")) to \(plan.lines.count), "
        + "in \(Texts.count(shrinker.lives, "life", "lives")):\n\n\(plan)\(comment)")
    let path = "\(options.folder)/\(promise.rawValue)-\(plan.seed).plan"
    do {
      try "\(plan)\(comment)".write(toFile: path, atomically: true, encoding: .utf8)
      say("play it again: script/simulate --plan \(path) --tell\n")
    } catch {
      say("\(path) cannot be written: \(error)\n")
    }
    return .found
  }
}
