import Testing

@testable import belfry

@Suite("Parameters of commands")
struct ParametersTests {
  private enum Size: String, CaseIterable { case small, large }

  private struct TeaCommand: Subcommand {
    static let about = CommandHelp("tea make", "make tea", discussion: "Boils water.")
    @Argument("KIND", "which tea") var kind: String
    @Argument("FILE", "what to read meanwhile") var file: String?
    @Option("--cups", "N", "how many", .integer(1...9)) var cups = 2
    @Option("--for", "TIME", "how long", .time(1...7200)) var time = 240
    @Option("--milk", "TEXT", "with milk of") var milk: String?
    @Option(repeated: "--guest", "NAME", "who drinks") var guests: [String]
    @Option(required: "--size", "WORD", "how large", .word) var size: Size
    @Flag("--hot", "not with ice") var isHot

    func run(in context: CommandContext) async throws {}
  }

  private func parsed(_ words: String...) throws -> TeaCommand {
    let command = TeaCommand()
    try declaredParameters(of: command).parse(words)
    return command
  }

  @Test("are read as values of their types")
  func values() throws {
    let tea = try parsed(
      "green", "--cups=3", "--guest", "Ann", "--for", "5m", "--guest", "Bob", "--size", "large",
      "--hot", "--", "--not-an-option")
    #expect(tea.kind == "green" && tea.file == "--not-an-option")
    #expect(tea.cups == 3 && tea.time == 300 && tea.size == .large && tea.isHot)
    #expect(tea.guests == ["Ann", "Bob"] && tea.milk == nil)
    #expect(tea.$cups.isGiven && !tea.$milk.isGiven)
    let plain = try parsed("black", "--size", "small")
    #expect(plain.cups == 2 && plain.time == 240 && plain.guests.isEmpty && plain.file == nil)
    #expect(!plain.isHot && !plain.$cups.isGiven)
  }

  @Test(
    "that make no sense are refused with their names",
    arguments: [
      (["--size", "small"], "KIND is missing"), (["green"], "--size is missing"),
      (["green", "--cup", "3"], "unknown option '--cup'; did you mean '--cups'?"),
      (["green", "--cups"], "--cups needs a value: --cups N"),
      (["green", "--cups", "10"], "--cups must be a whole number from 1 to 9, not '10'"),
      (["green", "--for", "3h"], "--for must be a time from 1s to 2h"),
      (["green", "--cups", "1", "--cups", "2"], "--cups is given twice"),
      (["green", "--hot=yes"], "--hot takes no value"),
      (["green", "--size", "huge"], "--size must be small or large, not 'huge'"),
      (["green", "a", "b", "--size", "small"], "unexpected 'b'"),
    ])
  func faults(words: [String], message: String) throws {
    let fault = #expect(throws: UsageError.self) {
      try declaredParameters(of: TeaCommand()).parse(words)
    }
    #expect(fault?.message.hasPrefix(message) == true, "\(fault?.message ?? "")")
  }

  @Test("tell the help, completions and the manual of themselves")
  func help() {
    let page = TeaCommand.help.page
    for line in [
      "USAGE  belfry tea make KIND [FILE] [options]", "  [FILE]  what to read meanwhile",
      "  --cups N      how many (default 2)", "  --for TIME    how long (default 4m)",
      "  --size WORD   how large", "  --hot         not with ice",
    ] {
      #expect(page.contains(line + "\n"), "\(page)")
    }
    #expect(
      CompletionScript([TeaCommand.help]).text(for: .bash).contains("--size) found='small large'"))
  }
}
