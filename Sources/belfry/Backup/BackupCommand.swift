import Foundation
import HubStorage

/// The password of a sealed backup, which is never an argument of a command.
struct BackupPassword {
  static let variable = "BELFRY_BACKUP_PASSWORD"
  let file: String?
  let context: CommandContext

  /// Whether a password was given, which requires a backup to be sealed.
  var isGiven: Bool { file != nil || context.environment[Self.variable] != nil }

  /// The password that was given; `nil` if the user must be asked.
  private func given() throws -> String? {
    try file.map { try NewPassword.firstLine(of: $0) } ?? context.environment[Self.variable]
  }

  func new() throws -> String {
    let password = try given() ?? NewPassword.ask("password of the backup")
    try NewPassword.check(password)
    return password
  }

  func known() throws -> String {
    if let password = try given() { return password }
    guard isatty(0) == 1, let password = HiddenInput.ask("password of the backup: ") else {
      throw UsageError(
        "the backup is sealed with a password: give --password-file FILE, or \(Self.variable)")
    }
    return password
  }
}

struct BackupCommand: ResultCommand {
  static let about = CommandHelp(
    "backup", "copy a hub with its keys into one file, also while it serves",
    discussion: """
      The file holds a consistent snapshot of the database, the master key, the authority of
      tlsSelfSigned and the operators: everything that a server needs besides its configuration. For
      an app backend (its --store) it holds messages, users and key. The copy is checked before the
      file gets its name.

      With its keys the file gives access to everything: protect it like master.key, or encrypt it
      with --encrypt, or leave the keys out and keep them elsewhere. The password is asked for, or
      taken from the first line of --password-file or from BELFRY_BACKUP_PASSWORD.

      Of a hub in PostgreSQL, --data names the directory of one of its nodes. The database is copied
      as it is at one moment, into a file that `belfry restore` makes a data directory of; `belfry
      move` brings that into a new database. docs/operate/backup.md has the details.
      """,
    examples: [
      "belfry backup /backup/hub.backup --data /var/lib/belfry",
      "belfry backup hub.backup --encrypt --password-file /etc/belfry/backup-password",
      "belfry backup - --encrypt | ssh vault 'cat > hub.backup'",
      "belfry backup hub.backup --without-master-key",
      "belfry backup /backup/hub.backup --data /var/lib/belfry-node",
    ])

  @Argument("FILE", "the file to write; - for standard output") var file: String
  @Option(
    "--data", "DIR", "the data directory of a hub or node (or BELFRY_DATA), or a backend's --store")
  var data: String?
  @Option("--config", "FILE", "a configuration file, which names the data directory")
  var config: String?
  @Flag("--without-master-key", "leave the keys out: what they seal stays sealed") var withoutKeys
  @Flag("--encrypt", "seal the file with a password") var encrypts
  @Option("--password-file", "FILE", "the password is the file's first line; - for stdin")
  var passwordFile: String?
  @Option(
    "--scratch", "DIR",
    "where the database is copied to first, unsealed (default: in the data directory)")
  var scratch: String?
  @Flag("--force", "replace FILE if it is there") var force
  @Flag("--json", "print one JSON object: file, made, belfry, entries") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    if passwordFile != nil, !encrypts { throw UsageError("--password-file goes with --encrypt") }
    if file == "-", json { throw UsageError("--json goes with a FILE: standard output is taken") }
    if file == "-", context.isTerminal { throw UsageError("a backup is nothing for a terminal") }
    if file.isEmpty { throw UsageError("FILE is missing") }
    var isFolder: ObjCBool = false
    if file != "-", FileManager.default.fileExists(atPath: file, isDirectory: &isFolder) {
      guard !isFolder.boolValue else {
        throw CommandFailure("\(file) is a directory: name a file in it", exitCode: .usage)
      }
      guard force else {
        throw CommandFailure(
          "\(file) is there already; name another, or say --force", exitCode: .usage)
      }
    }
    let location = HubLocation(data: data, config: config)
    let configuration = try location.configuration(context.environment)
    let directory = try location.local(in: context).directory
    let database = try directory.postgres(configuration.text(.database))
    if database == nil { try await directory.refuseMoved(nil) }
    let password = encrypts ? try BackupPassword(file: passwordFile, context: context).new() : nil
    var backup = Backup(directory: directory, context: context)
    backup.database = database
    backup.masterKey = configuration.text(.masterKey)
    backup.hasKeys = !withoutKeys
    backup.scratch = scratch
    let header = try await backup.write(to: file, password: password)
    let text =
      "\(header.size.megabytes) of \(database.map(DatabaseAddress.shown) ?? directory.path)"
      + (encrypts ? ", sealed with a password" : "")
      + (withoutKeys ? ", without keys" : "")
    if file == "-" { context.note(text) }
    if let operators = configuration.text(.operators) {
      context.note("not in it: \(operators), which the setting operators names; keep it besides")
    }
    if !withoutKeys, header.entry(.hub) != nil, header.entry(.masterKey) == nil {
      context.note("not in it: the master key, which the setting masterKey holds; keep it besides")
    }
    return CommandResult(
      BackupReport(file: file, header), file == "-" ? [] : ["backed up \(text), to \(file)"])
  }
}

/// The contents of a backup, for scripts.
struct BackupReport: Encodable {
  var file: String?
  /// The directory that was restored.
  var directory: String?
  /// The time of the backup, in ISO 8601.
  let made: String
  /// The version of belfry that created it.
  let belfry: String
  let entries: [BackupHeader.Entry]

  init(file: String? = nil, directory: String? = nil, _ header: BackupHeader) {
    (self.file, self.directory) = (file, directory)
    (made, belfry, entries) = (header.made, header.belfry, header.entries)
  }
}
