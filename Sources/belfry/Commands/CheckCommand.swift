import Foundation

struct CheckCommand: ResultCommand {
  static let about = CommandHelp(
    "check",
    "find problems in a hub's data, configuration and machine, and say how to fix them",
    discussion: """
      Reads every page of the database and compares derived data, members of tags and sums, with the
      rows they are computed from. Checks the permissions of files, certificates and expiring
      credentials, the clock, the disk, open files, the proxy's settings, and the health of the
      running server. On PostgreSQL it queries the database.

      It only reads, and is safe beside a running server. Run it as the server's user, with its
      configuration; run by root, it continues as the directory's owner. Exits with 0 without
      findings, else with 1. docs/operate/backup.md explains each finding.
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

  func result(in context: CommandContext) async throws -> CommandResult {
    let location = HubLocation(data: directory, config: file, settings: settings.given)
    let configuration = try location.configuration(context.environment)
    let (target, found) = try location.local(in: context)
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
    var lines: [String] = []
    for finding in findings {
      lines.append(
        finding.level.rawValue.padded(to: 8) + finding.code.padded(to: 12) + " " + finding.text)
      for (word, text) in [("why", finding.why), ("do", finding.advice)] {
        if let text { lines.append("        " + (word + ":").padded(to: 5) + text) }
      }
    }
    return CommandResult(
      Report(isWell: wrong == 0, findings: findings), lines,
      failure: wrong == 0
        ? nil : CommandFailure("\(wrong.counted("thing")) of \(findings.count) to look at"))
  }

  private struct Report: Encodable {
    let isWell: Bool
    let findings: [Finding]
  }
}
