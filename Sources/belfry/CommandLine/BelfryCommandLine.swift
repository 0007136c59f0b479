import HubCore
import NotificationHubs

/// Runs one command and turns what it throws into a line on standard error and an exit code.
enum BelfryCommandLine {
  static func run(_ words: [String], in context: CommandContext) async -> ExitCode {
    do {
      if words.isEmpty || ["--help", "-h", "help"].contains(words[0]) && words.count == 1 {
        context.print(CommandTable.overview)
        return words.isEmpty ? .usage : .done
      }
      if words == ["--version"] {
        try await VersionCommand(Words([], for: VersionCommand.help)).run(in: context)
        return .done
      }
      let asked = words[0] == "help" ? Array(words.dropFirst()) : words
      if words[0] == "help" || isFamilyHelp(asked) {
        context.print(try page(for: asked.filter { $0 != "--help" && $0 != "-h" }))
        return .done
      }
      let (command, rest) = try CommandTable.find(asked)
      if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
        context.print(command.help.page)
        return .done
      }
      try await command.init(Words(rest, for: command.help)).run(in: context)
      return .done
    } catch {
      return report(error, in: context)
    }
  }

  /// `belfry hub --help`: the name of several commands, asking for help.
  private static func isFamilyHelp(_ words: [String]) -> Bool {
    words.count == 2 && ["--help", "-h"].contains(words[1])
      && (try? CommandTable.find([words[0]])) == nil
  }

  private static func page(for words: [String]) throws -> String {
    if let found = try? CommandTable.find(words) { return found.command.help.page }
    let family = CommandTable.list(startingWith: words)
    return family.isEmpty ? try CommandTable.find(words).command.help.page : family
  }

  private static func report(_ error: any Error, in context: CommandContext) -> ExitCode {
    switch error {
    case let error as UsageError:
      context.note("belfry: \(error.message)")
      if let help = error.help { context.note("See `\(help.name) --help`.") }
      return .usage
    case let error as CommandFailure:
      context.note("belfry: \(error)")
      return error.exitCode
    case let error as ConfigurationError:
      context.note("belfry: \(error)")
      return .usage
    case let error as StoreError:
      context.note("belfry: \(error)")
      return .refused
    case let error as HubFailure:
      context.note("belfry: \(error)")
      return .refused
    case let error as CredentialError:
      context.note("belfry: \(error)")
      return .refused
    case is CancellationError:
      return .refused
    default:
      context.note("belfry: unexpected: \(error). This is a defect of Belfry; please report it.")
      return .defect
    }
  }
}
