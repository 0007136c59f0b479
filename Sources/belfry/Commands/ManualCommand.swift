/// `belfry manual`
struct ManualCommand: Subcommand {
  static let help = CommandHelp(
    "manual", "print the manual page of all commands, for man",
    examples: [
      "belfry manual > /tmp/belfry.1 && man /tmp/belfry.1",
      "belfry manual > /usr/local/share/man/man1/belfry.1",
    ])

  init(_ words: Words) {}

  func run(in context: CommandContext) async throws { context.print(ManualPage.text) }
}

/// The man page, made of what `--help` is made of.
enum ManualPage {
  static var text: String {
    var lines = [
      ".TH BELFRY 1 \"\" \"belfry \(BelfryVersion.current)\"", ".SH NAME",
      "belfry \\- a push notification hub", ".SH SYNOPSIS", ".B belfry", ".I COMMAND",
      "[options]", ".SH DESCRIPTION",
      "Belfry is a push notification hub that you run yourself. It speaks the protocol of Azure "
        + "Notification Hubs.", ".SH WHICH HUB", ".nf", escaped(HubTarget.rule), ".fi",
    ]
    for group in CommandTable.groups {
      lines.append(".SH \(escaped(group.title.uppercased()))")
      for command in group.commands { lines += self.lines(command.help) }
    }
    lines.append(".SH EXIT STATUS")
    for (code, meaning) in CommandTable.exitCodes {
      lines += [".TP", ".B \(code)", escaped(meaning)]
    }
    return lines.joined(separator: "\n")
  }

  private static func lines(_ help: CommandHelp) -> [String] {
    var lines = [
      ".SS " + escaped(([help.name] + help.arguments.map(\.name)).joined(separator: " ")),
      escaped(help.summary.prefix(1).uppercased() + help.summary.dropFirst() + "."),
    ]
    if !help.discussion.isEmpty {
      lines += [".PP", ".nf", escaped(help.discussion), ".fi"]
    }
    let rows =
      help.arguments.map { ($0.name, $0.help) }
      + help.options.map { ($0.name + ($0.value.map { " " + $0 } ?? ""), $0.help) }
    for (name, text) in rows { lines += [".TP", ".B \(escaped(name))", escaped(text)] }
    if !help.examples.isEmpty {
      lines += [".PP", ".nf", escaped(help.examples.joined(separator: "\n")), ".fi"]
    }
    return lines
  }

  /// A dot or an apostrophe at the start of a line would be a request of the formatter.
  private static func escaped(_ text: String) -> String {
    text.replacing(#"\"#, with: #"\e"#).replacing("-", with: #"\-"#)
      .split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.hasPrefix(".") || $0.hasPrefix("'") ? #"\&"# + $0 : String($0) }
      .joined(separator: "\n")
  }
}
