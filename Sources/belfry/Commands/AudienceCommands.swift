import NotificationHubs

struct AudienceCountCommand: ResultCommand {
  static let about = CommandHelp(
    "audience count", "count the devices that a tag expression reaches, without sending",
    discussion: """
      A native send reaches the devices of one platform, a template send those that have a template.
      A device with several templates gets a push for each.
      """,
    examples: [
      "belfry audience count --tags 'city:oslo && !muted' --data belfry-data",
      "belfry audience count --json",
    ])

  let client = ClientOptions(belfryOnly: "Send or the Manage")
  @Option(
    "--tags", "EXPR", "a tag expression such as 'news && !muted' (default: everyone)",
    .tagExpression) var expression: TagExpression?

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(in: context) { access in
      let count = try await access.client.count(of: expression)
      let rows = count.counts.map { item in
        item.platform.rawValue.padded(to: 8) + " " + String(item.devices).padded(to: 9) + " "
          + (item.template.map { $0.isEmpty ? "templates without a name" : "template \($0)" }
            ?? "native")
      }
      let native = count.counts.filter { $0.template == nil }.reduce(0) { $0 + $1.devices }
      return CommandResult(
        written: count.json,
        rows + [
          "\(native.counted("device")) in hub \(access.hub); "
            + "\((count.total - native).counted("push", "pushes")) of a template send"
            + (count.isEstimate ? " (about: a part of the hub was counted)" : "")
        ])
    }
  }
}

struct UserEraseCommand: ResultCommand {
  static let about = CommandHelp(
    "user erase", "erase a user: devices, schedules, stored payloads, records of devices",
    discussion: """
      Deletes the user's installations with their registrations, the records of deliveries to them,
      and every notification, sent or scheduled, that was for this user alone.
      """,
    examples: ["belfry user erase ann@example.com --yes --data belfry-data"])

  @Argument("ID", "the user's id, as the app has set it; letter case does not matter")
  var id: String
  let client = ClientOptions(belfryOnly: "Manage")
  @Flag("--yes", "do it without asking; there is no undo") var isConfirmed

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(.changes, in: context) { access in
      try context.confirm(
        "this erases user '\(id)' from hub '\(access.hub)' for good", isConfirmed)
      let erased = try await access.client.erase(user: id)
      let rows = [
        ("installations", erased.installations), ("schedules", erased.schedules),
        ("notifications", erased.notifications), ("records of devices", erased.deviceRecords),
        ("tags", erased.tags), ("templates", erased.templates),
      ].map { name, count in "  " + name.padded(to: 20) + String(count) }
      return CommandResult(
        written: erased.json, ["user \(id) is erased from hub \(access.hub):"] + rows)
    }
  }
}
