import Foundation

struct RestoreCommand: ResultCommand {
  static let about = CommandHelp(
    "restore", "create a data directory from a backup",
    discussion: """
      DIR must be empty, or is created. The whole backup is read and checked before anything is
      written; the database is renamed last, once the master key has opened its sealed values. Then
      start the server: belfry serve --data DIR.

      If the backup has no keys, pass the file with the key with --master-key, or the key in
      BELFRY_MASTER_KEY. Run by root, it continues as the owner of DIR once it has opened FILE and
      the key.

      A hub that was in PostgreSQL is in a file then; `belfry move` brings it into a new database.

      Sends that were under way in the backup continue from there: devices may get them twice, with
      the same push id. --verify checks the file, and writes nothing.
      """,
    examples: [
      "belfry restore hub.backup --data /var/lib/belfry",
      "belfry restore hub.backup --verify",
      "belfry restore hub.backup --data /var/lib/belfry --master-key /safe/master.key",
    ])

  @Argument("FILE", "what `belfry backup` wrote") var file: String
  @Option("--data", "DIR", "the new data directory (or BELFRY_DATA)") var data: String?
  @Option("--master-key", "FILE", "the master key, where the backup has none")
  var masterKeyFile: String?
  @Option("--password-file", "FILE", "its password is the file's first line; - for stdin")
  var passwordFile: String?
  @Flag("--verify", "only check the backup") var verifies
  @Flag("--json", "print one JSON object: file or directory, made, belfry, entries") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    let configuration = try HubLocation(data: data).configuration(context.environment)
    var path: String?
    if case .standard? = configuration.entries[Setting.data.key]?.origin {
    } else {
      path = configuration.text(.data)
    }
    let password = BackupPassword(file: passwordFile, context: context)
    var restore = Restore(
      file: file, context: context, password: { try password.known() },
      expectsSeal: password.isGiven)
    restore.masterKeyFile = masterKeyFile
    restore.masterKey = configuration.text(.masterKey)
    if verifies {
      let header = try restore.verify()
      let rows = header.entries.map { entry in
        entry.part.rawValue.padded(to: 18) + " " + "\(entry.size)".padded(to: 14)
          + (entry.schema.map { "schema version \($0)" } ?? "")
      }
      return CommandResult(
        BackupReport(file: file, header),
        rows + ["\(file) is whole: made \(header.made) by belfry \(header.belfry)"])
    }
    guard let path else { throw UsageError("--data is missing: the directory to restore to") }
    let (header, directory) = try restore.restore(to: path)
    let isHub = header.entry(.hub) != nil
    return CommandResult(
      BackupReport(directory: directory, header),
      [
        "restored \(directory) as it was \(header.made)",
        isHub
          ? "serve it: belfry serve --data \(CurlCommand.word(directory))"
          : "serve it: belfry backend --store \(CurlCommand.word(directory)) …",
      ])
  }
}
