struct CompletionsCommand: Subcommand {
  static let about = CommandHelp(
    "completions", "print a script that completes commands in a shell",
    discussion: "Put the line for your shell into its start-up file.",
    examples: [
      "source <(belfry completions bash)      # ~/.bashrc",
      "source <(belfry completions zsh)       # ~/.zshrc, behind compinit",
      "belfry completions fish | source       # ~/.config/fish/config.fish",
    ])

  @Argument(
    "SHELL", "bash, zsh or fish",
    Reader(words: CompletionScript.Shell.allCases.map(\.rawValue)) { text, _ throws(UsageError) in
      if let shell = CompletionScript.Shell(rawValue: text) { return shell }
      throw UsageError("'\(text)' is not bash, zsh or fish")
    }) var shell: CompletionScript.Shell

  func run(in context: CommandContext) async throws {
    context.print(CompletionScript(CommandTable.all.map { $0.help }).text(for: shell))
  }
}

/// Generates shell completions from the data of `--help`.
struct CompletionScript {
  enum Shell: String, CaseIterable { case bash, zsh, fish }

  private let commands: [CommandHelp]
  /// The next words of commands, by the words before them.
  private let nodes: [(words: String, next: [(word: String, help: String)])]

  init(_ commands: [CommandHelp]) {
    self.commands = commands
    var nodes: [(words: String, next: [(word: String, help: String)])] = []
    for command in commands {
      for count in 0..<command.words.count {
        let words = command.words.prefix(count).joined(separator: " ")
        let word = command.words[count]
        let isLast = count == command.words.count - 1
        let help = isLast ? command.summary : "\(word) …"
        if let index = nodes.firstIndex(where: { $0.words == words }) {
          if !nodes[index].next.contains(where: { $0.word == word }) {
            nodes[index].next.append((word, help))
          }
        } else {
          nodes.append((words, [(word, help)]))
        }
      }
    }
    self.nodes = nodes
  }

  func text(for shell: Shell) -> String {
    switch shell {
    case .bash: bash
    case .zsh: zsh
    case .fish: fish
    }
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: #"'\''"#) + "'"
  }

  /// The possible completions at a cursor position.
  private struct Place {
    /// A shell pattern for the words before the cursor.
    let pattern: String
    /// Commands, arguments and options.
    let next: [(word: String, help: String)]
    /// Options with a fixed set of values.
    let known: [Declaration]
    /// Options with free-text values, for which the shell completes files.
    let open: [Declaration]
  }

  /// Positions in order of decreasing word count, since `backend user` is not an argument of
  /// `backend`.
  private var places: [Place] {
    let all = Set(nodes.map(\.words) + commands.map { $0.words.joined(separator: " ") })
    func count(_ words: String) -> Int { words.split(separator: " ").count }
    return all.sorted { (-count($0), $0) < (-count($1), $1) }.map { words in
      let next = nodes.first { $0.words == words }?.next ?? []
      guard let command = commands.first(where: { $0.words.joined(separator: " ") == words })
      else { return Place(pattern: Self.quoted(words), next: next, known: [], open: []) }
      let options = command.options
      return Place(
        pattern: "\(Self.quoted(words))|\(Self.quoted(words + " "))*",
        next: next + command.argumentWords.map { ($0, "") } + options.map { ($0.name, $0.help) },
        known: options.filter { !$0.words.isEmpty },
        open: options.filter { $0.value != nil && $0.words.isEmpty })
    }
  }

  /// A branch of the `case` on the words before the cursor, which contains one on the word just
  /// before.
  private func branch(
    _ place: Place, words: ([String]) -> String, files: String,
    next: ([(word: String, help: String)]) -> String
  ) -> String {
    let values = place.known.map { "      \($0.name)) \(words($0.words)) ;;" }
    let open =
      place.open.isEmpty
      ? [] : ["      \(place.open.map(\.name).joined(separator: "|"))) \(files) ;;"]
    let inner = values + open + ["      *) \(next(place.next)) ;;"]
    return (["    \(place.pattern)) case \"$before\" in"] + inner + ["      esac ;;"])
      .joined(separator: "\n")
  }

  private var bash: String {
    let lines = places.map { place in
      branch(
        place, words: { "found=\(Self.quoted($0.joined(separator: " ")))" }, files: "return",
        next: { "found=\(Self.quoted($0.map(\.word).joined(separator: " ")))" })
    }
    return """
      # Completes belfry in bash. Where an option takes any text, files are completed.
      _belfry() {
        local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" found=
        local line="${COMP_WORDS[*]:1:COMP_CWORD-1}"
        COMPREPLY=()
        case "$line" in
      \(lines.joined(separator: "\n"))
        esac
        COMPREPLY=($(compgen -W "$found" -- "$current"))
      }
      complete -o default -F _belfry belfry
      """
  }

  private var zsh: String {
    func items(_ found: [(word: String, help: String)]) -> String {
      found.map { Self.quoted($0.word + ":" + $0.help.replacing(":", with: #"\:"#)) }
        .joined(separator: " ")
    }
    let lines = places.map { place in
      branch(
        place, words: { "compadd -- \($0.joined(separator: " ")); return" },
        files: "_files; return", next: { "found=(\(items($0)))" })
    }
    return """
      #compdef belfry
      # Completes belfry in zsh.
      _belfry() {
        local line="${words[2,CURRENT-1]}" before="${words[CURRENT-1]}"
        local -a found
        case "$line" in
      \(lines.joined(separator: "\n"))
        esac
        _describe belfry found || _files
      }
      # As a file of fpath this is the function's body; otherwise it is read once.
      if [ "${funcstack[1]}" = _belfry ]; then _belfry "$@"; else compdef _belfry belfry; fi
      """
  }

  private var fish: String {
    var lines = [
      "# Completes belfry in fish.",
      "function __belfry_at; set -l words (commandline -opc); test \"$words[2..]\" = \"$argv\"; end",
      "function __belfry_in; set -l words (commandline -opc);"
        + " set -l end (math (count $argv) + 1); test \"$words[2..$end]\" = \"$argv\"; end",
    ]
    for node in nodes {
      for (word, help) in node.next {
        lines.append(
          "complete -c belfry -f -n \(Self.quoted("__belfry_at \(node.words)")) -a \(word) -d "
            + Self.fishQuoted(help))
      }
    }
    for command in commands {
      let place = Self.quoted("__belfry_in \(command.words.joined(separator: " "))")
      if !command.argumentWords.isEmpty {
        lines.append(
          "complete -c belfry -f -n \(place) -a "
            + Self.quoted(command.argumentWords.joined(separator: " ")))
      }
      for option in command.options {
        let value =
          option.value == nil
          ? ""
          : option.words.isEmpty
            ? " -r" : " -x -a \(Self.quoted(option.words.joined(separator: " ")))"
        lines.append(
          "complete -c belfry -n \(place) -l \(option.name.dropFirst(2))\(value) -d "
            + Self.fishQuoted(option.help))
      }
    }
    return lines.joined(separator: "\n")
  }

  private static func fishQuoted(_ text: String) -> String {
    "'" + text.replacing(#"\"#, with: #"\\"#).replacing("'", with: #"\'"#) + "'"
  }
}

extension CommandHelp {
  /// The values of the first argument.
  fileprivate var argumentWords: [String] { arguments.first?.words ?? [] }
}

struct ManualCommand: Subcommand {
  static let about = CommandHelp(
    "manual", "print the manual page of all commands, for man",
    examples: [
      "belfry manual > /tmp/belfry.1 && man /tmp/belfry.1",
      "belfry manual > /usr/local/share/man/man1/belfry.1",
    ])

  func run(in context: CommandContext) async throws { context.print(ManualPage.text) }
}

/// Generates the man page from the data of `--help`.
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
    if !help.text.isEmpty {
      let text = CommandHelp.wrapped(help.text).joined(separator: "\n")
      lines += [".PP", ".nf", escaped(text), ".fi"]
    }
    for parameter in help.parameters {
      lines += [".TP", ".B \(escaped(parameter.shown))", escaped(parameter.help)]
    }
    if !help.examples.isEmpty {
      lines += [".PP", ".nf", escaped(help.examples.joined(separator: "\n")), ".fi"]
    }
    return lines
  }

  /// A dot or an apostrophe at the start of a line would be a formatter request.
  private static func escaped(_ text: String) -> String {
    text.replacing(#"\"#, with: #"\e"#).replacing("-", with: #"\-"#)
      .split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.hasPrefix(".") || $0.hasPrefix("'") ? #"\&"# + $0 : String($0) }
      .joined(separator: "\n")
  }
}

struct VersionCommand: ResultCommand {
  static let about = CommandHelp("version", "print the version", examples: ["belfry version"])

  @Flag("--json", "print one JSON object") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    CommandResult(["version": BelfryVersion.current], ["belfry \(BelfryVersion.current)"])
  }
}
