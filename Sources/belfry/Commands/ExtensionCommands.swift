import Foundation
import NotificationHubs

/// `belfry audience count`
struct AudienceCountCommand: Subcommand {
  static let help = CommandHelp(
    "audience count", "count whom a tag expression reaches, without sending",
    options: ClientOptions.options + [
      .value("--tags", "EXPR", "a tag expression such as 'news && !muted' (default: everyone)")
    ],
    discussion: """
      A native send reaches the devices of one platform, a template send those that have a template.
      A device with several templates gets a push for each.

      Belfry only; needs the Send or the Manage right. \(ClientOptions.note)
      """,
    examples: [
      "belfry audience count --tags 'city:oslo && !muted' --data belfry-data",
      "belfry audience count --json",
    ])

  let client: ClientOptions
  let expression: TagExpression?

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    do {
      // How many tags it may name is the hub's to say.
      let limits = TagExpressionLimits(alternatives: 1000, combinations: 1000)
      expression = try words.value("--tags").map { try TagExpression(parsing: $0, limits: limits) }
    } catch {
      throw words.fault("--tags: \(error)")
    }
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Send"), in: context)
    let count = try await access.calling { try await access.client.count(of: expression) }
    if client.json {
      context.print(String(decoding: count.json, as: UTF8.self))
      return
    }
    for item in count.counts {
      context.print(
        item.platform.rawValue.padded(to: 8) + " " + String(item.devices).padded(to: 9) + " "
          + (item.template.map { $0.isEmpty ? "templates without a name" : "template \($0)" }
            ?? "native"))
    }
    let native = count.counts.filter { $0.template == nil }.reduce(0) { $0 + $1.devices }
    context.print(
      (native == 1 ? "1 device" : "\(native) devices") + " in hub \(access.hub); "
        + (count.total - native == 1 ? "1 push" : "\(count.total - native) pushes")
        + " of a template send")
  }
}

/// `belfry user erase`
struct UserEraseCommand: Subcommand {
  static let help = CommandHelp(
    "user erase", "forget a user: devices, schedules, stored payloads, records of devices",
    arguments: [("ID", "the user's id, as the app has set it; letter case does not matter")],
    options: ClientOptions.options + [
      .flag("--yes", "do it without asking; there is no undo")
    ],
    discussion: """
      Removes the user's installations with their registrations, what is kept about deliveries to
      them, and every notification, sent or scheduled, that was for this user alone.

      Belfry only; needs the Manage right. \(ClientOptions.note)
      """,
    examples: ["belfry user erase ann@example.com --yes --data belfry-data"])

  let id: String
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.changes("Manage"), in: context)
    try context.confirm(
      "this erases user '\(id)' from hub '\(access.hub)' for good", client.words)
    let erased = try await access.calling { try await access.client.erase(user: id) }
    if client.json {
      context.print(String(decoding: erased.json, as: UTF8.self))
      return
    }
    context.print("user \(id) is erased from hub \(access.hub):")
    for (name, count) in [
      ("installations", erased.installations), ("schedules", erased.schedules),
      ("notifications", erased.notifications), ("records of devices", erased.deviceRecords),
    ] {
      context.print("  " + name.padded(to: 20) + String(count))
    }
  }
}
