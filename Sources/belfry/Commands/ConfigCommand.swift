/// `belfry config`
struct ConfigCommand: Subcommand {
  static let help = CommandHelp(
    "config", "print the configuration that is in force, secrets hidden",
    options: [
      .value(
        "--config", "FILE", "the configuration file (default: belfry.json here, if it is there)"),
      .flag("--json", "print one JSON object"),
    ] + Setting.all.map(\.option),
    discussion: """
      A key in the file, an environment variable and a flag share one name:
      "bodyLimit" in belfry.json, BELFRY_BODY_LIMIT, --body-limit. Flags win over variables,
      variables over the file. belfry.json is JSON in which // comments are allowed.
      """,
    examples: ["belfry config", "BELFRY_PORT=9000 belfry config --data /var/lib/belfry"])

  let words: Words
  init(_ words: Words) { self.words = words }

  func run(in context: CommandContext) async throws {
    let configuration = try Configuration(
      file: words.value("--config"), environment: context.environment, words: words)
    let entries = Setting.all.map { ($0, configuration.entries[$0.key]) }
    if words.flag("--json") {
      var object: [String: String?] = [:]
      for (setting, entry) in entries {
        object[setting.key] = entry.map { shown($0) }
      }
      object["hubs"] = configuration.hubs.map(\.name).joined(separator: ",")
      try context.printJSON(object)
      return
    }
    for (setting, entry) in entries {
      let value = entry.map { shown($0) } ?? "-"
      context.print(
        setting.key.padded(to: 21) + " " + value.padded(to: 32) + " "
          + (entry?.origin.description ?? "not set"))
    }
    for hub in configuration.hubs {
      let weight = hub.weight == 1 ? "" : " (weight \(hub.weight))"
      context.print("hub".padded(to: 21) + " " + hub.name + weight)
    }
  }

  private func shown(_ entry: Configuration.Entry) -> String {
    entry.setting.isSecret ? "(hidden)" : entry.values.joined(separator: ",")
  }
}
