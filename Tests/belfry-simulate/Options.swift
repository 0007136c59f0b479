import Foundation
import HubSimulation

/// The exit codes of the program, as listed in docs/simulation.md.
enum Exit: Int32 {
  case nothingFound = 0
  case found = 1
  /// A promise or a kind of fault was not tested once in many lives.
  case blind = 2
  /// The same plan was two different lives.
  case notDeterministic = 3
  /// A process did not survive a life, or hung within a step of it.
  case crashed = 4
  case usage = 64
  case failed = 70
}

/// The parsed command line.
struct Options {
  struct Fault: Error, CustomStringConvertible {
    let description: String
    /// It is about what is in a file, not about the options.
    var isOfFile = false
  }

  enum Action {
    case run
    case help
    case contract
    /// Lives what its parent sends.
    case worker
    /// Shortens a plan while it breaks a promise.
    case shrink(Promise)
    case play
  }

  var action = Action.run
  var seed: UInt64 = 1
  var lives: Int?
  var minutes: Double?
  var plan: Plan?
  var planPath: String?
  var jobs = ProcessInfo.processInfo.activeProcessorCount
  var isTelling = false
  var stopsAtFirst = false
  /// Names of promises, without which nothing counts as found.
  var wanted: Set<String>?
  /// The folder for the plans of what was found.
  var folder = ".build/simulation"
  var planOptions = PlanMaker.Options()
  /// The words that a child needs to make the same plans.
  private(set) var planWords: [String] = []

  static let usage = """
    Usage: belfry-simulate [OPTION...]

    Lives of a hub, its nodes, database, push services and clients on virtual time, each from a seed of
    its own (default 1). script/simulate builds and calls it: its --help has the options and exit codes.

    Promises: \(Promise.allCases.map(\.rawValue).joined(separator: " "))

    Faults: \(Act.faults.map(\.rawValue).joined(separator: " "))

    """

  init(_ words: some Sequence<String>) throws {
    var words = Array(words)[...]
    var given: [String] = []
    while let word = words.popFirst() {
      guard !given.contains(word) else { throw Fault(description: "\(word) is there twice") }
      given.append(word)
      switch word {
      case "-h", "--help":
        action = .help
        return
      case "--seed":
        let text = try Self.value(of: word, &words)
        guard let value = UInt64(text), value <= Self.mostSeed else {
          throw Fault(
            description: "--seed needs a number from 0 to \(Self.mostSeed), not '\(text)'")
        }
        seed = value
      case "--lives": lives = try Self.number(word, &words, 1...1_000_000_000)
      case "--jobs": jobs = try Self.number(word, &words, 1...256)
      case "--nodes":
        let nodes = try Self.number(word, &words, 1...5)
        planOptions.nodes = nodes
        planWords += [word, "\(nodes)"]
      case "--minutes":
        let text = try Self.value(of: word, &words)
        guard let value = Double(text), (0.001...100_000).contains(value) else {
          throw Fault(description: "--minutes needs a number from 0.001 to 100000, not '\(text)'")
        }
        minutes = value
      case "--short":
        planOptions.isShort = true
        planWords.append(word)
      case "--only":
        let value = try Self.value(of: word, &words)
        planOptions.only = try Self.faults(value)
        planWords += [word, value]
      case "--plan":
        let path = try Self.value(of: word, &words)
        plan = try Self.plan(path)
        planPath = path
      case "--keep": folder = try Self.value(of: word, &words)
      case "--tell": isTelling = true
      case "--first": stopsAtFirst = true
      case "--wanted": wanted = Set(try Self.promises(try Self.value(of: word, &words)))
      case "--contract": action = .contract
      case "--worker": action = .worker
      case "--shrink":
        action = .shrink(try Self.promise(try Self.value(of: word, &words)))
      default: throw Fault(description: "'\(word)' is unknown")
      }
    }
    try Self.checkTogether(given)
    if wanted != nil { stopsAtFirst = true }
    if given.contains("--tell") || given.contains("--shrink") {
      guard (lives ?? 1) == 1, minutes == nil else {
        let word = given.contains("--tell") ? "--tell" : "--shrink"
        throw Fault(description: "\(word) is about one life")
      }
    }
    if case .run = action, plan != nil || isTelling { action = .play }
  }

  /// Refuses an option that another one leaves without effect.
  private static func checkTogether(_ given: [String]) throws {
    // A plan says itself which life it is, and is one life.
    let ofMany = [
      "--seed", "--lives", "--minutes", "--nodes", "--only", "--short", "--first", "--wanted",
    ]
    let excluded = [
      "--contract": ofMany + ["--plan", "--tell", "--shrink"], "--plan": ofMany + ["--jobs"],
      "--shrink": ["--tell"], "--tell": ["--first", "--jobs"],
    ]
    for word in excluded.keys.sorted() where given.contains(word) {
      if let other = given.first(where: { excluded[word]?.contains($0) ?? false }) {
        throw Fault(description: "\(word) and \(other) exclude each other")
      }
    }
  }

  /// Other seeds follow it.
  private static let mostSeed = UInt64(Int64.max)

  private static func value(of word: String, _ words: inout ArraySlice<String>) throws -> String {
    guard let value = words.first, !value.hasPrefix("--") else {
      throw Fault(description: "\(word) needs a value")
    }
    return words.removeFirst()
  }

  private static func number(
    _ word: String, _ words: inout ArraySlice<String>, _ range: ClosedRange<Int>
  ) throws -> Int {
    let text = try value(of: word, &words)
    guard let value = Int(text), range.contains(value) else {
      throw Fault(
        description: "\(word) needs a number from \(range.lowerBound) to \(range.upperBound), "
          + "not '\(text)'")
    }
    return value
  }

  private static func faults(_ text: String) throws -> Set<Act> {
    Set(
      try text.split(separator: ",", omittingEmptySubsequences: false).map { name in
        guard let act = Act(rawValue: String(name)), act.isFault else {
          throw Fault(
            description: "there is no fault '\(name)': they are "
              + Act.faults.map(\.rawValue).joined(separator: ", "))
        }
        return act
      })
  }

  private static func promise(_ name: some StringProtocol) throws -> Promise {
    guard let promise = Promise(rawValue: String(name)) else {
      throw Fault(
        description: "there is no promise '\(name)': they are "
          + Promise.allCases.map(\.rawValue).joined(separator: ", "))
    }
    return promise
  }

  private static func promises(_ text: String) throws -> [String] {
    try text.split(separator: ",", omittingEmptySubsequences: false).map {
      try promise($0).rawValue
    }
  }

  /// Of a plan's file. That of a drawn life has some kB.
  private static let mostBytes = 4_000_000

  private static func plan(_ path: String) throws -> Plan {
    func unreadable(_ reason: String) -> Fault {
      Fault(description: "--plan: '\(path)' cannot be read: \(reason)", isOfFile: true)
    }
    func systemReason() -> String { String(cString: strerror(errno)) }
    var status = stat()
    guard stat(path, &status) == 0 else { throw unreadable(systemReason()) }
    // Opening a pipe would wait for its writer.
    guard status.st_mode & S_IFMT == S_IFREG else { throw unreadable("it is no file") }
    guard let file = fopen(path, "r") else { throw unreadable(systemReason()) }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&block, 1, block.count, file)
      if count == 0 { break }
      bytes += block.prefix(count)
      guard bytes.count <= mostBytes else {
        throw unreadable("it has more than \(mostBytes / 1_000_000) MB, and is no plan")
      }
    }
    guard ferror(file) == 0 else { throw unreadable(systemReason()) }
    guard let text = String(bytes: bytes, encoding: .utf8) else {
      throw unreadable("it is not text in UTF-8")
    }
    do {
      return try Plan(text)
    } catch {
      throw Fault(description: "\(path): \(error)", isOfFile: true)
    }
  }

  /// The one life that the words are about.
  var onePlan: Plan { plan ?? PlanMaker.plan(seed: seed, planOptions) }
}
