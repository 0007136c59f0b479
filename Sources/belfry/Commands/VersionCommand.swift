/// The version, as the change log counts it.
enum BelfryVersion {
  static let current = "0.1.0"
}

/// `belfry version`
struct VersionCommand: Subcommand {
  static let help = CommandHelp(
    "version", "print the version", options: [.flag("--json", "print one JSON object")],
    examples: ["belfry version"])

  let json: Bool

  init(_ words: Words) { json = words.flag("--json") }

  func run(in context: CommandContext) async throws {
    if json {
      try context.printJSON(["version": BelfryVersion.current])
    } else {
      context.print("belfry \(BelfryVersion.current)")
    }
  }
}
