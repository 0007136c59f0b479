import Foundation

struct CheckCommand: Subcommand {
  static let about = CommandHelp(
    "check",
    "look for what is wrong with a hub's data, configuration and machine, and say what to do",
    discussion: """
      Reads the database to its last page and compares what is kept twice: members of tags and sums
      with the rows they are made of. Looks at files and who may read them, certificates and
      expiring credentials, the clock, the disk, open files, the proxy's settings, and asks the
      server that runs. On PostgreSQL it asks the database.

      It only reads, also beside a running server, and is for the user and the configuration of the
      server; run by root it goes on as the directory's owner. Ends with 0 when all is well, with 1 when it has found something. docs/operate/backup.md
      says what each finding means.
      """,
    examples: [
      "sudo -u belfry belfry check --config /etc/belfry/belfry.json",
      "belfry check --data /var/lib/belfry --thorough --json",
    ])

  @Option("--data", "DIR", "the data directory of the hub, or of a node (or BELFRY_DATA)")
  var directory: String?
  @Option("--config", "FILE", "the configuration file (default: belfry.json here, if it is there)")
  var file: String?
  private let settings = SettingOptions([.database])
  @Flag("--thorough", "compare each index with its table, too: takes some times as long")
  var isThorough
  @Flag("--json", "print one JSON object") var json

  func run(in context: CommandContext) async throws {
    let place = HubPlace(data: directory, config: file, settings: settings.given)
    let configuration = try place.configuration(context.environment)
    let (target, found) = try place.local(in: context)
    if configuration.text(.database) != nil, !found.isUsed {
      throw UsageError(
        "no node has run in \(found.path): give --data with the directory of one, too, which has the "
          + "database's master key")
    }
    let data = try DataDirectory.existing(at: found.path, onlyReads: true)
    try data.becomeOwner()
    target.announce(changes: false, hub: nil, in: context)
    let check = Checkup(
      data: data, configuration: configuration, context: context, isThorough: isThorough)
    let findings = await check.findings().map(\.harmless)
    let wrong = findings.filter { $0.level != .ok }.count
    if json {
      try context.printJSON(Report(isWell: wrong == 0, findings: findings))
    } else {
      for finding in findings {
        context.print(
          finding.level.rawValue.padded(to: 8) + finding.code.padded(to: 12) + " " + finding.text)
        for (word, text) in [("why", finding.why), ("do", finding.advice)] {
          if let text { context.print("        " + (word + ":").padded(to: 5) + text) }
        }
      }
    }
    if wrong > 0 {
      throw CommandFailure("\(wrong.counted("thing")) of \(findings.count) to look at")
    }
  }

  private struct Report: Encodable {
    let isWell: Bool
    let findings: [Finding]
  }
}
