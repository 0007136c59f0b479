import NotificationHubs
import Wire

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
      var writer = JSONWriter()
      writer.beginObject()
      for (setting, entry) in entries { write(setting, entry, to: &writer) }
      writer.name("hubs")
      write(configuration.hubs.map(\.name), to: &writer)
      writer.endObject()
      context.print(String(decoding: writer.bytes, as: UTF8.self))
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

  /// As it would stand in the file.
  private func write(
    _ setting: Setting, _ entry: Configuration.Entry?, to writer: inout JSONWriter
  ) {
    writer.name(setting.key)
    switch (entry?.values, setting.kind) {
    case (nil, _): writer.raw("null")
    case (_, _) where setting.isSecret: writer.string("(hidden)")
    case (let values?, .list): write(values, to: &writer)
    case (let values?, .integer), (let values?, .flag): writer.raw(values[0])
    case (let values?, _): writer.string(values[0])
    }
  }

  private func write(_ list: [String], to writer: inout JSONWriter) {
    writer.beginArray()
    for text in list { writer.string(text) }
    writer.endArray()
  }

  private func shown(_ entry: Configuration.Entry) -> String {
    entry.setting.isSecret ? "(hidden)" : entry.values.joined(separator: ",")
  }
}
