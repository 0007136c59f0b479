import Foundation

struct RestoreCommand: Subcommand {
  static let about = CommandHelp(
    "restore", "make a data directory of a backup",
    discussion: """
      DIR is empty, or is made. The whole backup is read and checked before anything is written; the
      database gets its name last, once the master key has opened what is sealed in it. Then start
      the server: belfry serve --data DIR.

      Where the keys were left out, --master-key names the file that was kept, or BELFRY_MASTER_KEY
      holds it. Run by root, it goes on as the owner of DIR, once it has opened FILE and the key.

      What was under way when the backup was made goes on from there: devices may get it twice, with
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

  func run(in context: CommandContext) async throws {
    let configuration = try HubPlace(data: data).configuration(context.environment)
    var path: String?
    if case .standard? = configuration.entries[Setting.data.key]?.origin {
      guard verifies else { throw UsageError("--data is missing: the directory to restore to") }
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
      if json { return try context.printJSON(BackupReport(file: file, header)) }
      for entry in header.entries {
        context.print(
          entry.part.rawValue.padded(to: 18) + " " + "\(entry.size)".padded(to: 14)
            + (entry.schema.map { "schema version \($0)" } ?? ""))
      }
      context.print("\(file) is whole: made \(header.made) by belfry \(header.belfry)")
    } else if let path {
      let (header, directory) = try restore.restore(to: path)
      if json { return try context.printJSON(BackupReport(directory: directory, header)) }
      context.print("restored \(directory) as it was \(header.made)")
      let isHub = header.entry(.hub) != nil
      context.print(
        isHub
          ? "serve it: belfry serve --data \(CurlCommand.word(directory))"
          : "serve it: belfry backend --store \(CurlCommand.word(directory)) …")
    }
  }
}
