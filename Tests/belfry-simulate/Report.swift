import Foundation
import HubSimulation

/// The report at the end of a run.
struct Report {
  /// After so many lives nothing may be left that was never tested.
  private static let manyLives = 10_000

  private let tally: Tally
  private let options: Options
  private let seconds: Double

  init(_ tally: Tally, _ options: Options, seconds: Double) {
    self.tally = tally
    self.options = options
    self.seconds = seconds
  }

  /// Prints it, and decides how the program ends.
  func conclude() -> Exit {
    say(
      """

      \(Texts.count(tally.lives, "life", "lives")) in \(Int(seconds)) s: \
      \(Int(Double(tally.lives) / seconds)) a second, \
      \(tally.steps) steps, \(Self.span(tally.virtualSeconds)) of virtual time, \
      \(Int(tally.virtualSeconds / seconds)) times real time; \(tally.livesTwice) lived twice, \
      \(tally.differences.count) of them differently
      """)
    printFaults()
    printPromises()
    let found = Dictionary(grouping: tally.found, by: \.promise).mapValues(\.count)
    let list = found.keys.sorted().map { "\($0) \(found[$0] ?? 0)" }.joined(separator: ", ")
    say("findings: \(list.isEmpty ? "none" : list)")
    let blind = tally.lives >= Self.manyLives ? untested : []
    if !blind.isEmpty {
      say("never tested in \(tally.lives) lives: \(blind.joined(separator: ", "))")
    }
    say("digest \(Self.hex(tally.digest))")
    if !tally.differences.isEmpty { return .notDeterministic }
    if tally.found.contains(where: \.isLost) { return .crashed }
    if !tally.found.isEmpty { return .found }
    return blind.isEmpty ? .nothingFound : .blind
  }

  private var wanted: [Act] {
    Act.faults.filter { options.planOptions.only?.contains($0) ?? true }
  }

  private func count(_ act: Act) -> Int {
    tally.strikes[act.rawValue]?.values.reduce(0, +) ?? 0
  }

  private func printFaults() {
    let counts = wanted.map { "\($0.rawValue) \(count($0))" }
    say("\nfaults that struck: \(counts.joined(separator: ", "))")
    // States are what nodes wait for; those that were seen could have been met by each kind.
    let states = Set(tally.strikes.values.flatMap(\.keys))
    let struck = wanted.reduce(0) { $0 + (tally.strikes[$1.rawValue]?.count ?? 0) }
    say(
      "fault × what the node waited for: \(struck) pairs of \(wanted.count * states.count); "
        + "least met: \(rarest(states))")
    let never = wanted.filter { count($0) == 0 }.map(\.rawValue)
    if !never.isEmpty { say("kinds that never struck: \(never.joined(separator: ", "))") }
  }

  /// The states that the fewest kinds have met.
  private func rarest(_ states: Set<String>) -> String {
    let kinds = states.map { state in
      (state, wanted.count { tally.strikes[$0.rawValue]?[state] != nil })
    }
    return kinds.sorted { ($0.1, $0.0) < ($1.1, $1.0) }.prefix(5)
      .map { "\($0.0) (\(Texts.count($0.1, "kind")))" }.joined(separator: ", ")
  }

  private func printPromises() {
    say("\npromises, and how often each was tested with something at stake:")
    for promise in Promise.allCases {
      let count = "\(tally.checks[promise.rawValue] ?? 0)"
      let space = String(repeating: " ", count: max(1, 11 - count.count))
      say("\(space)\(count)  \(promise.rawValue): \(promise.sentence)")
    }
    say("")
  }

  /// Kinds and promises without a single case. A run of few kinds or of one size may lack others.
  private var untested: [String] {
    let faults = wanted.filter { count($0) == 0 }.map { "fault \($0.rawValue)" }
    guard options.planWords.isEmpty else { return faults }
    return faults
      + Promise.allCases.filter { tally.checks[$0.rawValue] ?? 0 == 0 }
      .map { "promise \($0.rawValue)" }
  }

  /// As long for each digest.
  static func hex(_ digest: UInt64) -> String {
    let digits = String(digest, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// A time for people.
  static func span(_ seconds: Double) -> String {
    let units: [(String, Double)] = [
      ("years", 31_557_600), ("days", 86_400), ("hours", 3_600), ("minutes", 60),
    ]
    for (name, length) in units where seconds >= 2 * length {
      return String(format: "%.1f ", seconds / length) + name
    }
    return "\(Int(seconds)) seconds"
  }
}
