import Foundation
import NotificationHubs
import Wire

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

      Belfry only; needs the Send or the Manage right. \(HubTarget.note)
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

      Belfry only; needs the Manage right. \(HubTarget.note)
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
      ("tags", erased.tags), ("templates", erased.templates),
    ] {
      context.print("  " + name.padded(to: 20) + String(count))
    }
  }
}

/// `belfry hub restore-devices`
struct HubRestoreDevicesCommand: Subcommand {
  static let help = CommandHelp(
    "hub restore-devices", "bring back devices that a push service has wrongly called dead",
    options: ClientOptions.options + [
      .value(
        "--platform", "WORD", "only those of this platform: apns, fcmv1, wns …",
        words: PushPlatform.allCases.map(\.rawValue)),
      .value("--since", "TIME", "only those removed since then, such as 2030-01-31T18:00:00Z"),
      .flag("--dry-run", "only show what could come back, by hour"),
    ],
    discussion: """
      A device whose handle the push service calls dead leaves the hub, and is kept for seven days.
      When that was a mistake (a wrong credential, a service in trouble), this undoes it: find the
      wave with --dry-run, mend the credential, then bring the wave back. A device whose app has
      registered again meanwhile stays as the app has said.

      Belfry only; needs the Manage right. \(HubTarget.note)
      """,
    examples: [
      "belfry hub restore-devices --dry-run --data belfry-data",
      "belfry hub restore-devices --hub news --platform apns --since 2030-01-31T18:00:00Z",
    ])

  let client: ClientOptions
  let platform: PushPlatform?
  let since: Date?
  let isDryRun: Bool

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    isDryRun = words.flag("--dry-run")
    platform = try words.value("--platform").map { word in
      guard let platform = PushPlatform(installationWord: word) else {
        throw words.fault("'\(word)' is no platform")
      }
      return platform
    }
    since = try words.value("--since").map { text in
      guard let time = WireDate.parse(text) else {
        throw words.fault("--since: '\(text)' is no time such as 2030-01-31T18:00:00Z")
      }
      return time
    }
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(
      isDryRun ? .looks("Manage") : .changes("Manage"), in: context)
    guard isDryRun else {
      let done = try await access.calling {
        try await access.client.restoreDevices(on: platform, since: since)
      }
      if client.json {
        context.print(String(decoding: done.json, as: UTF8.self))
      } else {
        context.print(
          "\(done.restored) registrations are back in hub \(access.hub); \(done.superseded) stay "
            + "away: their app has registered again, or their time is over")
      }
      return
    }
    let found = try await access.calling {
      try await access.client.removedDevices(on: platform, since: since)
    }
    if client.json {
      context.print(String(decoding: found.json, as: UTF8.self))
      return
    }
    for item in found.items {
      context.print(
        WireDate.seconds(item.hour) + "  " + item.platform.rawValue.padded(to: 8) + " "
          + item.outcome.padded(to: 16) + " " + String(item.registrations))
    }
    context.print("\(found.total) registrations could come back in hub \(access.hub)")
  }
}
