/// Every command, in the order of the overview.
enum CommandTable {
  static let groups: [(title: String, commands: [any Subcommand.Type])] = [
    (
      "Try it, and develop",
      [
        DemoCommand.self, UpCommand.self, EmulatorCommand.self, EmulatorWaitCommand.self,
        PhoneCommand.self,
      ]
    ),
    (
      "Serve",
      [
        ServeCommand.self, ConfigCommand.self, HealthCommand.self, TopCommand.self,
        NodeListCommand.self, DatabaseAdoptCommand.self, MoveCommand.self, BackupCommand.self,
        RestoreCommand.self,
        CheckCommand.self, KeyListCommand.self, KeyRotateCommand.self, BackendCommand.self,
        BackendUserAddCommand.self,
        BackendUserListCommand.self, BackendUserDeleteCommand.self, BackendUserRevokeCommand.self,
        BackendAuditCommand.self,
      ]
    ),
    (
      "Hubs, keys and credentials",
      [
        HubCreateCommand.self, HubListCommand.self, HubShowCommand.self, HubUpdateCommand.self,
        HubDeleteCommand.self, HubRestoreDevicesCommand.self, ActivityCommand.self,
        OperatorAddCommand.self, OperatorListCommand.self, OperatorRemoveCommand.self,
        PolicyCreateCommand.self,
        PolicyListCommand.self, PolicyShowCommand.self, PolicyRotateCommand.self,
        PolicyDeleteCommand.self, CredentialSetCommand.self, CredentialListCommand.self,
        CredentialProbeCommand.self, CredentialDeleteCommand.self, SASCommand.self,
      ]
    ),
    (
      "Devices",
      [
        InstallationPutCommand.self, InstallationGetCommand.self, InstallationPatchCommand.self,
        InstallationDeleteCommand.self, InstallationListCommand.self, RegistrationPutCommand.self,
        RegistrationGetCommand.self, RegistrationDeleteCommand.self, RegistrationListCommand.self,
        DeviceSearchCommand.self, AudienceCountCommand.self, UserEraseCommand.self,
        ExportCommand.self, ImportCommand.self,
      ]
    ),
    (
      "Send",
      [
        SendCommand.self, NotificationListCommand.self, NotificationShowCommand.self,
        NotificationWatchCommand.self, NotificationExplainCommand.self,
        NotificationDevicesCommand.self, NotificationCancelCommand.self,
        NotificationAbortCommand.self,
        ScheduleListCommand.self,
        ChannelCreateCommand.self, ChannelListCommand.self, ChannelShowCommand.self,
        ChannelSendCommand.self, ChannelDeleteCommand.self, StatisticsCommand.self,
      ]
    ),
    ("Help", [CompletionsCommand.self, ManualCommand.self, VersionCommand.self]),
  ]

  static let all = groups.flatMap(\.commands)

  /// The exit codes, common to all commands.
  static let exitCodes: [(code: String, meaning: String)] = [
    ("0", "success"),
    ("1", "the hub refused, or the result was not reached, such as a device that got no push"),
    ("64", "invalid arguments or configuration, or a file that they name cannot be read"),
    ("69", "a hub, emulator or backend cannot be reached, or a port is not available"),
    ("70", "a defect in Belfry"),
    ("71", "the system allows the process too few resources, such as open files"),
  ]

  /// The overview that `belfry --help` prints.
  static var overview: String {
    var lines = [
      "Belfry: a push notification hub that speaks the protocol of Azure Notification Hubs.", "",
      "USAGE  belfry COMMAND [options]",
    ]
    for group in groups {
      lines += ["", group.title.uppercased()]
      lines += CommandHelp.columns(
        group.commands.map { ($0.about.words.joined(separator: " "), $0.about.summary) }, width: 22)
    }
    lines += ["", "WHICH HUB"]
    lines += HubTarget.rule.split(separator: "\n").map { "  " + $0 }
    lines += ["", "EXIT CODES"]
    lines += CommandHelp.columns(exitCodes.map { ($0.code, $0.meaning) })
    lines += [
      "", "Start with `belfry demo`. Every command explains itself: `belfry COMMAND --help`.",
      "`belfry completions SHELL` completes commands with the tab key; `belfry manual` is a man page.",
    ]
    return lines.joined(separator: "\n")
  }

  /// Finds the command that the first words name, and the words after it.
  /// - Throws: ``UsageError`` if there is none.
  static func find(_ words: [String]) throws -> (command: any Subcommand.Type, rest: [String]) {
    // `backend user add` is different from `backend`.
    let named = all.filter { words.starts(with: $0.about.words) }
    if let command = named.max(by: { $0.about.words.count < $1.about.words.count }) {
      return (command, Array(words.dropFirst(command.about.words.count)))
    }
    let first = words.first ?? ""
    let family = list(startingWith: [first])
    if !family.isEmpty { throw UsageError("'\(first)' needs one of these:\n\(family)") }
    let known = Set(all.compactMap { $0.about.words.first })
    let hint = Suggestion.text(for: first, among: known.sorted())
    throw UsageError(
      "unknown command '\(first)'\(hint.isEmpty ? ";" : hint) `belfry --help` lists them")
  }

  /// A line for each command whose name begins with these words; empty if there is none.
  static func list(startingWith words: [String]) -> String {
    let family = all.map { $0.about }.filter { $0.words.starts(with: words) }
    return CommandHelp.columns(family.map { ($0.name, $0.summary) }).joined(separator: "\n")
  }
}
