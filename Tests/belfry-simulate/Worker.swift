import Foundation
import HubSimulation

/// A child: lives the seeds that its parent sends, as lines `FIRST COUNT`, until there are no more.
///
/// It says `life SEED` before each, so that its parent knows which one it did not survive, and its
/// ``Tally`` as JSON behind.
struct Worker {
  /// One life of so many is lived twice.
  static let twice: UInt64 = 50

  private let options: Options

  init(_ options: Options) { self.options = options }

  func run() -> Exit {
    Program.beginLiving()
    let encoder = JSONEncoder()
    while let line = readLine() {
      let numbers = line.split(separator: " ").compactMap { UInt64($0) }
      guard numbers.count == 2 else { return .failed }
      for seed in numbers[0]..<numbers[0] + numbers[1] {
        say("life \(seed)")
        let tally = live(seed)
        guard let json = try? encoder.encode(tally) else { return .failed }
        say(String(decoding: json, as: UTF8.self))
      }
    }
    return .nothingFound
  }

  private func live(_ seed: UInt64) -> Tally {
    let plan = PlanMaker.plan(seed: seed, options.planOptions)
    let life = Program.live(plan)
    var tally = Tally(life)
    if (seed &- options.seed).isMultiple(of: Self.twice) {
      tally.noteLivedTwice()
      let again = Program.live(plan)
      if again.world.digest != life.world.digest {
        tally.differences.append(.init(seed: seed, text: Self.difference(plan)))
      }
    }
    return tally
  }

  /// The first step at which two lives of a plan differ.
  private static func difference(_ plan: Plan) -> String {
    let (one, other) = (
      Program.live(plan, isTelling: true), Program.live(plan, isTelling: true)
    )
    let step = zip(one.world.trail, other.world.trail).enumerated().first {
      $1.0.digest != $1.1.digest
    }
    guard let (number, (here, there)) = step else {
      return "two more lives of it were the same"
    }
    func last(_ life: Life, _ told: Int) -> String {
      guard told > 0 else { return "nothing" }
      let entry = life.world.history[told - 1]
      return "\(life.moment(Double(entry.at) / 1e9)) \(entry.line)"
    }
    return "they differ from step \(number) on: \(last(one, here.told)) | "
      + last(other, there.told)
  }
}
