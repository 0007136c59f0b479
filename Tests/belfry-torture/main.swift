import Foundation
import HubTesting

let usage = """
  usage: belfry-torture [--engine sqlite|postgres] [--nodes N] [--devices N] [--kills N]
                        [--seed S]

  Kills a hub at random moments of broadcasts, with faults switched on in the push service, and
  counts what became of every push; see docs/reliability.md.

    --engine E   where the hub keeps its data (default sqlite); postgres starts a server of its own
    --nodes N    hubs on the one database, of which one is killed at a time (default 1; more than one
                 want --engine postgres)
    --devices N  devices of each broadcast (default 100000)
    --kills N    broadcasts with a kill each, some with two (default 20)
    --seed S     repeats a run (default: a random one, printed)
  """

/// Ends with what was wrong with the words.
func refuse(_ reason: String) -> Never {
  FileHandle.standardError.write(Data("belfry-torture: \(reason)\n\(usage)\n".utf8))
  exit(64)
}

var options = KillTest.Options()
options.seed = .random(in: 1...999_999)
var words = CommandLine.arguments.dropFirst()
while let word = words.popFirst() {
  if word == "--help" || word == "-h" {
    print(usage)
    exit(0)
  }
  if word == "--engine" {
    switch words.popFirst() {
    case "sqlite": options.usesPostgres = false
    case "postgres": options.usesPostgres = true
    default: refuse("--engine wants sqlite or postgres")
    }
    continue
  }
  guard ["--nodes", "--devices", "--kills", "--seed"].contains(word) else {
    refuse("unknown word '\(word)'")
  }
  guard let number = words.popFirst().flatMap({ Int($0) }), (1...10_000_000).contains(number) else {
    refuse("\(word) wants a whole number from 1")
  }
  switch word {
  case "--devices": options.devices = number
  case "--kills": options.kills = number
  case "--nodes": options.nodes = number
  default: options.seed = UInt64(number)
  }
}
guard options.nodes == 1 || options.usesPostgres else {
  refuse("one file has one hub: --nodes wants --engine postgres")
}
let start = ContinuousClock.now
options.log = { line in
  let seconds = (ContinuousClock.now - start) / .seconds(1)
  print(seconds.formatted(.number.precision(.fractionLength(1))), "s ", line)
  fflush(nil)
}
do {
  let report = try await KillTest(options).run()
  for fault in report.faults.prefix(20) { print("BROKEN PROMISE:", fault) }
  print(report.faults.isEmpty ? "every promise held" : "\(report.faults.count) broken promises")
  exit(report.faults.isEmpty ? 0 : 1)
} catch {
  FileHandle.standardError.write(Data("belfry-torture: \(error)\n".utf8))
  exit(70)
}
