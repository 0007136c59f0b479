/// Every command, in the order of the overview.
enum CommandTable {
  static let groups: [(title: String, commands: [any Subcommand.Type])] = [
    (
      "Development",
      [
        DemoCommand.self, UpCommand.self, OpenCommand.self, StatusCommand.self,
        PhoneCommand.self, EmulatorCommand.self, EmulatorWaitCommand.self,
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
      "Hubs and keys",
      [
        HubCreateCommand.self, HubListCommand.self, HubShowCommand.self, HubUpdateCommand.self,
        HubDeleteCommand.self, HubRestoreDevicesCommand.self, ActivityCommand.self,
        OperatorAddCommand.self, OperatorListCommand.self, OperatorDeleteCommand.self,
        PolicyCreateCommand.self,
        PolicyListCommand.self, PolicyShowCommand.self, PolicyRotateCommand.self,
        PolicyDeleteCommand.self, CredentialSetCommand.self, CredentialListCommand.self,
        CredentialProbeCommand.self, CredentialDeleteCommand.self, SASCommand.self,
      ]
    ),
    (
      "Devices",
      [
        InstallationSetCommand.self, InstallationShowCommand.self, InstallationUpdateCommand.self,
        InstallationDeleteCommand.self, InstallationListCommand.self, RegistrationSetCommand.self,
        RegistrationShowCommand.self, RegistrationDeleteCommand.self, RegistrationListCommand.self,
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

  private static let head = [
    "Belfry: a push notification hub, wire-compatible with Azure Notification Hubs.", "",
    "USAGE  belfry COMMAND [options]", "",
  ]

  /// The overview that `belfry --help` prints: a screen of 80 columns and 24 lines.
  static var overview: String {
    let first: [any Subcommand.Type] = [
      DemoCommand.self, UpCommand.self, PhoneCommand.self, OpenCommand.self, StatusCommand.self,
      SendCommand.self, ServeCommand.self,
    ]
    var lines = head
    lines += CommandHelp.columns(first.map { ($0.about.words[0], $0.about.summary) })
    lines += ["", "ALL COMMANDS; `belfry help all` says what each does"]
    for group in groups {
      var names: [String] = []
      for word in group.commands.map({ $0.about.words[0] }) where !names.contains(word) {
        names.append(word)
      }
      lines += CommandHelp.columns(
        [(group.title, names.joined(separator: ", "))], width: 14, lineWidth: 78)
    }
    lines += ["", "`belfry COMMAND --help` explains a command."]
    return lines.joined(separator: "\n")
  }

  /// Every command, the selection of the hub and the exit codes, as `belfry help all` prints them.
  static var everything: String {
    var lines = Array(head.dropLast())
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

  /// Verbs of the REST API and of other tools, each with ours.
  private static let otherVerbs = [
    "put": "set", "get": "show", "patch": "update", "remove": "delete", "rm": "delete",
    "ls": "list",
  ]

  /// Finds the command that the first words name, and the words after it.
  /// - Throws: ``UsageError`` if there is none.
  static func find(_ words: [String]) throws -> (command: any Subcommand.Type, rest: [String]) {
    // `backend user add` is different from `backend`.
    let named = all.filter { words.starts(with: $0.about.words) }
    if let command = named.max(by: { $0.about.words.count < $1.about.words.count }) {
      let rest = Array(words.dropFirst(command.about.words.count))
      try check(rest, of: command)
      return (command, rest)
    }
    if words.count > 1, let verb = otherVerbs[words[1]],
      let found = try? find([words[0], verb] + words.dropFirst(2))
    {
      return found
    }
    throw unknown(words)
  }

  /// Takes a word after a command that has no arguments for the mistyped name of a longer command:
  /// `emulator wiat` for that of `emulator wait`.
  /// - Throws: ``UsageError`` for such a word.
  private static func check(_ rest: [String], of command: any Subcommand.Type) throws {
    guard let word = rest.first, !word.hasPrefix("-"),
      all.contains(where: {
        $0.about.words.count > command.about.words.count
          && $0.about.words.starts(with: command.about.words)
      }),
      !declaredParameters(of: command.init()).contains(where: \.declaration.isArgument)
    else { return }
    throw unknown(command.about.words + rest)
  }

  /// The error for words that name no command, with the commands that begin with the first of them.
  private static func unknown(_ words: [String]) -> UsageError {
    let names = all.map { $0.about.words }
    let depth = (0...words.count).last { depth in
      names.contains { $0.count > depth && $0.starts(with: words[..<depth]) }
    }
    let known = words.prefix(depth ?? 0)
    let word = words.dropFirst(known.count).first ?? ""
    let next = Set(
      names.filter { $0.starts(with: known) }.compactMap { $0.dropFirst(known.count).first })
    let hint = Suggestion.text(for: word, among: next.sorted())
    guard !known.isEmpty else {
      return UsageError(
        "unknown command '\(word)'\(hint.isEmpty ? ";" : hint) `belfry --help` lists them")
    }
    let group = known.joined(separator: " ")
    let fault =
      word.isEmpty || word.hasPrefix("-")
      ? "'\(group)' needs one of these:"
      : "'\(group)' has no '\(word)'\(hint.isEmpty ? "." : hint) It has these:"
    return UsageError("\(fault)\n\(list(startingWith: Array(known)))")
  }

  /// A line for each command whose name begins with these words and goes on; empty if there is none.
  static func list(startingWith words: [String]) -> String {
    let family = all.map { $0.about }.filter {
      $0.words.count > words.count && $0.words.starts(with: words)
    }
    return CommandHelp.columns(family.map { ($0.name, $0.summary) }).joined(separator: "\n")
  }
}
