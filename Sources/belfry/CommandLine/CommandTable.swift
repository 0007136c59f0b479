/// Every command, in the order of the overview.
enum CommandTable {
  static let all: [any Subcommand.Type] = [
    DemoCommand.self, UpCommand.self, EmulatorCommand.self, PhoneCommand.self, ServeCommand.self,
    HubCreateCommand.self,
    HubListCommand.self, HubShowCommand.self, HubUpdateCommand.self, HubDeleteCommand.self,
    PolicyCreateCommand.self,
    PolicyListCommand.self, PolicyShowCommand.self, PolicyRotateCommand.self,
    PolicyDeleteCommand.self, CredentialSetCommand.self, CredentialListCommand.self,
    CredentialProbeCommand.self, CredentialDeleteCommand.self, InstallationPutCommand.self,
    InstallationGetCommand.self,
    InstallationPatchCommand.self, InstallationDeleteCommand.self, InstallationListCommand.self,
    AudienceCountCommand.self, UserEraseCommand.self,
    RegistrationPutCommand.self, RegistrationGetCommand.self, RegistrationDeleteCommand.self,
    RegistrationListCommand.self,
    ExportCommand.self, ImportCommand.self,
    SendCommand.self, NotificationShowCommand.self, NotificationWatchCommand.self,
    NotificationExplainCommand.self, NotificationDevicesCommand.self,
    NotificationCancelCommand.self, ChannelCreateCommand.self, ChannelListCommand.self,
    ChannelShowCommand.self, ChannelSendCommand.self, ChannelDeleteCommand.self, SASCommand.self,
    BackendUserAddCommand.self, BackendUserListCommand.self, BackendUserDeleteCommand.self,
    BackendAuditCommand.self, BackendCommand.self,
    ConfigCommand.self,
    VersionCommand.self,
  ]

  /// The overview that `belfry --help` prints.
  static var overview: String {
    let rows = all.map { ($0.help.words.joined(separator: " "), $0.help.summary) }
    return """
      Belfry: a push notification hub that speaks the protocol of Azure Notification Hubs.

      USAGE  belfry COMMAND [options]

      COMMANDS
      \(CommandHelp.columns(rows).joined(separator: "\n"))

      Start with `belfry demo`. Every command explains itself: `belfry COMMAND --help`.
      Exit codes: 0 done, 1 the hub said no, 64 wrong words, 69 cannot reach, 70 a defect.
      """
  }

  /// Finds the command that the first words name, and the words behind it.
  /// - Throws: ``UsageError`` when there is none.
  static func find(_ words: [String]) throws -> (command: any Subcommand.Type, rest: [String]) {
    if let command = all.first(where: { words.starts(with: $0.help.words) }) {
      return (command, Array(words.dropFirst(command.help.words.count)))
    }
    let first = words.first ?? ""
    let family = list(startingWith: [first])
    if !family.isEmpty { throw UsageError("'\(first)' wants one of:\n\(family)") }
    let known = Set(all.compactMap { $0.help.words.first })
    let hint = Words.suggestion(first, among: known.sorted())
    throw UsageError(
      "unknown command '\(first)'\(hint.isEmpty ? ";" : hint) `belfry --help` lists them")
  }

  /// A line for each command whose name starts so; empty when there is none.
  static func list(startingWith words: [String]) -> String {
    let family = all.map { $0.help }.filter { $0.words.starts(with: words) }
    return CommandHelp.columns(family.map { ($0.name, $0.summary) }).joined(separator: "\n")
  }
}
