import Foundation
import HubSimulation
import Synchronization

/// A run: children that live seeds side by side, in blocks of which each takes the next, so that
/// what was lived is always the first so many seeds.
final class WorkerPool: Sendable {
  private struct State {
    var next: UInt64
    var left: Int
    var isOver = false
    var tally = Tally()
    var running = 0
    /// By number of the child, what it lives and since when.
    var lives: [Int: (child: Child, seed: UInt64, since: Date)] = [:]
    /// Findings that were printed, by promise.
    var printed: [String: Int] = [:]
  }

  /// Seeds that a child takes at a time.
  private static let block = 8
  /// A life that takes more seconds of real time hangs within a step.
  private static let longest = 300.0
  /// Findings of a promise that are printed.
  private static let mostPrinted = 5
  /// In place of a promise, when a child has not survived a life.
  private static let crash = "crashed"

  private let options: Options
  private let began = Date()
  private let end: Date
  private let state: Mutex<State>
  private let isTerminal = isatty(1) == 1

  init(_ options: Options) {
    self.options = options
    let minutes = options.minutes ?? (options.lives == nil ? 1 : 100_000)
    end = Date(timeIntervalSinceNow: minutes * 60)
    state = Mutex(State(next: options.seed, left: options.lives ?? Int.max))
  }

  func run() -> Exit {
    signal(SIGPIPE, SIG_IGN)
    state.withLock { $0.running = options.jobs }
    for number in 0..<options.jobs {
      Thread.detachNewThread { [self] in
        work(number)
        state.withLock { $0.running -= 1 }
      }
    }
    var shown = Date()
    while state.withLock({ $0.running > 0 }) {
      // Progress for a person who looks on; no result waits for it.
      usleep(50_000)
      watch()
      if -shown.timeIntervalSinceNow >= (isTerminal ? 1 : 10) {
        showProgress()
        shown = Date()
      }
    }
    if isTerminal { say("\u{1b}[K", terminator: "") }
    let tally = state.withLock { $0.tally }
    shrink(tally)
    return Report(tally, options, seconds: -began.timeIntervalSinceNow).conclude()
  }

  // MARK: Children

  /// One thread for each child: sends it seeds, and hears what became of them.
  private func work(_ number: Int) {
    var child: Child?
    while let block = takeBlock() {
      var seeds = block
      while !seeds.isEmpty {
        // One after the other: see ``Child/init(_:)``.
        let worker = child ?? state.withLock { _ in makeWorker() }
        child = worker
        worker.write("\(seeds.lowerBound) \(seeds.count)")
        if !hear(worker, number, &seeds) {
          bury(worker, number, &seeds)
          child = nil
        }
      }
    }
    _ = child?.end()
  }

  private func makeWorker() -> Child {
    Child(["--worker", "--seed", "\(options.seed)"] + options.planWords)
  }

  private func takeBlock() -> Range<UInt64>? {
    state.withLock { state in
      guard !state.isOver, state.left > 0, Date() < end else { return nil }
      let count = min(Self.block, state.left)
      state.left -= count
      defer { state.next += UInt64(count) }
      return state.next..<state.next + UInt64(count)
    }
  }

  /// - Returns: `false` when the child has ended before its seeds.
  private func hear(_ child: Child, _ number: Int, _ seeds: inout Range<UInt64>) -> Bool {
    let decoder = JSONDecoder()
    while !seeds.isEmpty {
      guard let line = child.read() else { return false }
      if line.hasPrefix("life ") {
        state.withLock { $0.lives[number] = (child, seeds.lowerBound, Date()) }
      } else if let tally = try? decoder.decode(Tally.self, from: Data(line.utf8)) {
        seeds = seeds.lowerBound + 1..<seeds.upperBound
        take(tally)
        state.withLock { $0.lives[number] = nil }
      } else {
        // A product that prints is no reason to end.
        say(line)
      }
    }
    return true
  }

  private func take(_ tally: Tally) {
    var tally = tally
    tally.found.removeAll { !isWanted($0) }
    state.withLock { [tally] state in
      state.tally.add(tally)
      for difference in tally.differences {
        say("not deterministic: seed \(difference.seed): \(difference.text)")
      }
      for found in tally.found { note(found, &state) }
    }
  }

  /// With --wanted nothing else counts.
  private func isWanted(_ found: Tally.Found) -> Bool {
    options.wanted?.contains(found.promise) ?? true
  }

  private func note(_ found: Tally.Found, _ state: inout State) {
    state.printed[found.promise, default: 0] += 1
    if options.stopsAtFirst { state.isOver = true }
    guard state.printed[found.promise]! <= Self.mostPrinted else { return }
    say("finding: \(found.promise) seed \(found.seed): \(found.text)")
    if state.printed[found.promise] == Self.mostPrinted {
      say("more of \(found.promise) are counted only")
    }
  }

  /// A child has ended within a life, which is a finding: a trap of the product, as a rule.
  private func bury(_ child: Child, _ number: Int, _ seeds: inout Range<UInt64>) {
    let (signal, code) = child.end()
    state.withLock { state in
      guard let life = state.lives.removeValue(forKey: number) else {
        Program.fail("a child ended at once, with signal \(signal), exit code \(code)")
      }
      let isSlow = -life.since.timeIntervalSinceNow > Self.longest
      let found = Tally.Found(
        promise: isSlow ? Promise.finite.rawValue : Self.crash, seed: life.seed,
        text: isSlow
          ? "a step has not ended after \(Int(Self.longest)) s"
          : "the process ended with " + (signal == 0 ? "exit code \(code)" : "signal \(signal)"),
        isLost: true)
      if isWanted(found) {
        state.tally.found.append(found)
        note(found, &state)
      }
      seeds = life.seed + 1..<seeds.upperBound
    }
  }

  private func watch() {
    state.withLock { state in
      for life in state.lives.values where -life.since.timeIntervalSinceNow > Self.longest {
        life.child.kill()
      }
    }
  }

  // MARK: Telling

  private func showProgress() {
    let tally = state.withLock { $0.tally }
    let seconds = -began.timeIntervalSinceNow
    let text =
      "\(Int(seconds)) s: \(Texts.count(tally.lives, "life", "lives")), "
      + "\(Int(Double(tally.lives) / seconds)) a second, "
      + "\(Report.span(tally.virtualSeconds)) of virtual time, "
      + Texts.count(tally.found.count, "finding")
    if isTerminal {
      say("\u{1b}[K\(text)\r", terminator: "")
    } else {
      say(text)
    }
  }

  /// Shortens the first life that broke each promise.
  private func shrink(_ tally: Tally) {
    var promises: Set<String> = []
    for found in tally.found.sorted(by: { ($0.promise, $0.seed) < ($1.promise, $1.seed) })
    where promises.insert(found.promise).inserted {
      let words =
        ["--seed", "\(found.seed)"] + options.planWords
      say("\n\(found.promise), seed \(found.seed): \(found.text)")
      let again = "script/simulate \(words.joined(separator: " ")) --lives 1"
      guard !found.isLost else {
        say("not shortened; play it again: \(again) --debug")
        continue
      }
      say("play it again: \(again) --tell")
      let child = Child(["--shrink", found.promise, "--keep", options.folder] + words)
      while let line = child.read() { say(line) }
      _ = child.end()
    }
  }
}
