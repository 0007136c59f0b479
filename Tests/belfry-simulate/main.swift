import Foundation
import HubSimulation

func simulate() {
  TaskHook.install()
  let first = UInt64(CommandLine.arguments[1])!, count = UInt64(CommandLine.arguments[2])!
  let tells = CommandLine.arguments.contains("--tell")
  let began = Date()
  var steps = 0, virtual = 0.0, found = 0, digest: UInt64 = 0
  var kinds: [String: Int] = [:]
  var checks: [Promise: Int] = [:]
  for seed in first..<first + count {
    let life = Life(PlanMaker.plan(seed: seed), isTelling: tells)
    TaskHook.within(life.world) { life.live() }
    steps += life.world.steps
    virtual += life.world.seconds
    digest = digest &* 31 &+ life.world.digest
    checks.merge(life.checks, uniquingKeysWith: +)
    if tells { for entry in life.world.history { print(String(format: "%9.4f %3d ", Double(entry.at) / 1e9, entry.place) + entry.line) } }
    fflush(nil)
    if let finding = life.findings.first {
      found += 1
      kinds[finding.promise.rawValue, default: 0] += 1
      if kinds[finding.promise.rawValue]! <= 2 || tells { print("seed \(seed) at \(Int(finding.at)) s: \(finding.promise.rawValue): \(finding.text)") }
    }
  }
  let seconds = -began.timeIntervalSinceNow
  print("lives \(count) findings \(found) \(kinds) steps \(steps) \(Int(Double(count) / seconds)) lives/s \(Int(Double(steps) / seconds)) steps/s \(Int(virtual / seconds)) x real time")
  print(checks.map { "\($0.key.rawValue) \($0.value)" }.sorted().joined(separator: " "))
  print("digest \(String(digest, radix: 16))")
}
simulate()
