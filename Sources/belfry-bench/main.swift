import Foundation

/// All rows, in the order of the table. A new one is a file in `Rows` and a line here.
let rows: [any BenchmarkRow] = [
  TransportRow(), GatewayRow(), FCMRow(), WebPushRow(),
  DispatchRow(), PoolRow(), Latency.median, Latency.tail, PutInstallationRow(),
  HTTPSRow(figure: .http1), HTTPSRow(figure: .http2), HTTPSRow(figure: .ratio),
  IdleMemoryRow(), Broadcast.cost, Broadcast.rate, Broadcast.memory,
  GrowthRow(.everyone, devices: 10_000), GrowthRow(.everyone, devices: 100_000),
  GrowthRow(.crew, devices: 10_000), GrowthRow(.crew, devices: 100_000),
  GrowthRow(.crew, devices: 1_000_000),
  Outage.cpu, Outage.disk, Outage.drain, FeedbackRow(),
  StoreFixture.start, StoreTargetsRow(), StoreAudience.firstPage, StoreAudience.count,
  StoreAudience.allKinds, StoreAudience.rareTag, StoreInstallationsRow(),
  PutInstallationRow(.besideOthers), SealRow(), SecureFetchRow(),
  PostgresInstallationsRow(), PutInstallationRow(.postgres), PostgresTargetsRow(),
  StoreAudience.postgresFirstPage, StoreAudience.postgresCount,
  Latency.postgresMedian, Latency.postgresTail,
  PostgresBroadcastRow(nodes: 1), PostgresBroadcastRow(nodes: 2), PostgresBroadcastRow(nodes: 3),
  GrowthRow(.everyone, devices: 10_000, isPostgres: true),
  GrowthRow(.everyone, devices: 100_000, isPostgres: true),
  GrowthRow(.crew, devices: 10_000, isPostgres: true),
  GrowthRow(.crew, devices: 100_000, isPostgres: true),
  GrowthRow(.crew, devices: 1_000_000, isPostgres: true),
]

let usage = """
  usage: belfry-bench [--quick] [--json] [--devices N] [--puts N] [--connections N]
                      [--postgres ADDRESS] [ROW…]

  Measures what Belfry promises in figures. Without a ROW, all of them:
  \(rows.map { "  \($0.name)  (\($0.unit), goal \($0.goal))" }.joined(separator: "\n"))

    --quick  fewer repetitions, and 100 000 devices in place of a million: a smoke test, not a
             figure to quote
    --json   one JSON value on standard output instead of the table
    --devices N  as many devices in place of a million, in the rows that have so many
    --puts N     as many requests in the rows put_installation.*, each 1 kB of memory
    --connections N  as many clients at once in these rows, in place of 64
    --postgres ADDRESS  an empty database for the rows postgres.*, which they fill; libpq's form
  """

/// The options of the command line besides flags and rows.
enum BenchmarkOption: String, CaseIterable {
  case devices = "--devices"
  case puts = "--puts"
  case connections = "--connections"
  case postgres = "--postgres"

  var text: String? {
    let words = CommandLine.arguments
    guard let place = words.firstIndex(of: rawValue), place + 1 < words.count else { return nil }
    return words[place + 1]
  }

  var value: Int? { text.flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil } }
}

var words = Array(CommandLine.arguments.dropFirst())
if words.first == TransportSink.word {
  try await TransportSink.run(Array(words.dropFirst()))
  exit(0)
}
if words.first == HTTPLoad.word {
  try HTTPLoad.run(Array(words.dropFirst()))
  exit(0)
}
if words.first == BroadcastHub.word {
  try await BroadcastHub.run(Array(words.dropFirst()))
  exit(0)
}
if words.first == BroadcastHub.nodeWord {
  try await BroadcastHub.runNode(Array(words.dropFirst()))
  exit(0)
}
if words.first == IdleStore.word {
  try await IdleStore.run(Array(words.dropFirst()))
  exit(0)
}
if words.contains("--help") || words.contains("-h") {
  print(usage)
  exit(0)
}
let isQuick = words.contains("--quick")
let isJSON = words.contains("--json")
words.removeAll { $0 == "--quick" || $0 == "--json" }
for option in BenchmarkOption.allCases
where option == .postgres ? option.text != nil : option.value != nil {
  words.firstIndex(of: option.rawValue).map { words.removeSubrange($0...$0 + 1) }
}
for word in words where !rows.contains(where: { $0.name == word }) {
  FileHandle.standardError.write(Data("belfry-bench: unknown word '\(word)'\n\(usage)\n".utf8))
  exit(64)
}
let chosen =
  words.isEmpty
  ? rows.filter { !isQuick || $0.isPartOfQuickRun } : rows.filter { words.contains($0.name) }
let report = await BenchmarkReport.run(chosen, isQuick: isQuick) { line in
  FileHandle.standardError.write(Data((line + "\n").utf8))
}
await StoreFixture.shared.remove()
print(isJSON ? try report.json() : report.table)
exit(report.failures.isEmpty ? 0 : 70)
