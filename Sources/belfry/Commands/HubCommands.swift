import Foundation
import HubCore
import NotificationHubs
import Wire

/// A hub as printed by the commands.
private struct ShownHub: Encodable {
  let name: String
  let createdAt: String
  let registrationTTL: Int?
  let disabled: Bool
  let userMetadata: String?
  let updatedAt: String
  let policies: [String]
  let credentials: [String]

  init(_ hub: Hub, service: HubService) async throws {
    name = hub.name
    createdAt = hub.createdAt.formatted(.iso8601)
    registrationTTL = hub.registrationTTL.map { Int($0) }
    disabled = hub.isDisabled
    userMetadata = hub.userMetadata
    updatedAt = hub.updatedAt.formatted(.iso8601)
    policies = try await service.policies(hub: hub.name).map(\.name)
    credentials = try await service.credentials(hub: hub.name).map(\.platform.rawValue)
  }

  func print(json: Bool, in context: CommandContext) throws {
    if json { return try context.printJSON(self) }
    let lines = [
      "name          \(name)",
      "created       \(createdAt)",
      "updated       \(updatedAt)",
      "status        \(disabled ? "disabled: refuses devices and sends" : "enabled")",
      "devices live  \(registrationTTL.map { "\($0) s after their last write" } ?? "forever")",
      "policies      \(policies.joined(separator: ", "))",
      "credentials   "
        + (credentials.isEmpty
          ? "none; add one with `belfry credential set`" : credentials.joined(separator: ", ")),
    ]
    for line in lines + (userMetadata.map { ["metadata      \($0)"] } ?? []) { context.print(line) }
  }
}

/// The lifetime of devices after their last write.
private let lifetime = Reader.time(86_400...Int(Int32.max))

struct HubCreateCommand: Subcommand {
  static let about = CommandHelp(
    "hub create", "create a hub with its default access policies",
    examples: ["belfry hub create news --data /var/lib/belfry"])

  @Argument("NAME", "begins with a letter; letters, digits and -._", .hubName) var name: String
  let management = ManagementOptions(namesHub: false)
  @Option(
    "--ttl", "TIME", "forget devices so long after their last write: 90d (default: never)", lifetime
  )
  var ttl: Int?

  func run(in context: CommandContext) async throws {
    try await management.withHub(.creates(name), as: .init("createHub"), in: context) { runtime in
      do {
        _ = try await runtime.service.createHub(
          named: name, registrationTTL: ttl.map(TimeInterval.init))
      } catch let failure as HubFailure where failure.status == 409 {
        throw CommandFailure("a hub named '\(name)' exists already")
      }
      let hub = try await runtime.hub(named: name)
      if management.json {
        return try await ShownHub(hub, service: runtime.service).print(json: true, in: context)
      }
      let place = management.place.options
      context.print("created hub \(hub.name)")
      context.print(
        "next: belfry credential set apns\(place) --hub \(hub.name) --key AuthKey_….p8 …")
      if !runtime.data.isServed { context.print("      belfry serve\(place)") }
      context.print("      belfry sas --connection-string\(place) --hub \(hub.name)")
    }
  }
}

struct HubListCommand: Subcommand {
  static let about = CommandHelp(
    "hub list", "list the hubs",
    examples: ["belfry hub list --json"])

  let management = ManagementOptions(namesHub: false)

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      var hubs: [ShownHub] = []
      for hub in try await runtime.service.hubs() {
        hubs.append(try await ShownHub(hub, service: runtime.service))
      }
      if management.json { return try context.printJSON(["hubs": hubs]) }
      for hub in hubs {
        context.print(
          "\(hub.name.padded(to: 24)) \(hub.createdAt)  credentials: "
            + (hub.credentials.isEmpty ? "none" : hub.credentials.joined(separator: ", "))
            + (hub.disabled ? "  (disabled)" : ""))
      }
      context.print(hubs.count.counted("hub"))
    }
  }
}

struct HubShowCommand: Subcommand {
  static let about = CommandHelp(
    "hub show", "show one hub",
    examples: ["belfry hub show news"])

  @Argument("NAME", "the hub") var name: String
  let management = ManagementOptions(namesHub: false)

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      try await ShownHub(try await runtime.hub(named: name), service: runtime.service)
        .print(json: management.json, in: context)
    }
  }
}

struct HubUpdateCommand: Subcommand {
  static let about = CommandHelp(
    "hub update", "change a hub: how long devices live, disabled or not, its metadata",
    discussion: """
      Anything that is not given stays as it is. A new --ttl applies to a device from its next
      write.
      """,
    examples: [
      "belfry hub update news --ttl 90d", "belfry hub update news --disable --json",
    ])

  @Argument("NAME", "the hub") var name: String
  let management = ManagementOptions(namesHub: false)
  @Option(
    "--ttl", "TIME", "forget devices so long after their last write: 90d; or never",
    Reader<Int?> { text, name throws(UsageError) in
      text == "never" ? nil : try lifetime.read(text, name)
    }) var ttl: Int??
  @Flag("--disable", "refuse devices and sends until it is enabled again") var disables
  @Flag("--enable", "take devices and sends again") var enables
  @Option("--metadata", "TEXT", "text of your own, kept with the hub; empty takes it away")
  var metadata: String?

  func run(in context: CommandContext) async throws {
    try UsageError.check(exclusive: $disables, $enables)
    if ttl == nil, !disables, !enables, metadata == nil {
      throw UsageError("nothing to change; give --ttl, --disable, --enable or --metadata")
    }
    try await management.withHub(.changesHub(name), as: .init("updateHub"), in: context) {
      runtime in
      let present = try await runtime.hub(named: name)
      var change = HubChange(
        registrationTTL: present.registrationTTL,
        isDisabled: disables || present.isDisabled && !enables,
        userMetadata: present.userMetadata)
      if let ttl { change.registrationTTL = ttl.map(TimeInterval.init) }
      if let metadata { change.userMetadata = metadata.isEmpty ? nil : metadata }
      let hub = try await runtime.service.updateHub(named: present.name, change)
      try await ShownHub(hub, service: runtime.service).print(json: management.json, in: context)
    }
  }
}

struct HubDeleteCommand: Subcommand {
  static let about = CommandHelp(
    "hub delete", "delete a hub with all its devices and notifications",
    examples: ["belfry hub delete news --yes"])

  @Argument("NAME", "the hub") var name: String
  let management = ManagementOptions(namesHub: false)
  @Flag("--yes", "do it without asking; there is no undo") var isConfirmed

  func run(in context: CommandContext) async throws {
    try await management.withHub(.changesHub(name), as: .init("deleteHub"), in: context) {
      runtime in
      let hub = try await runtime.hub(named: name)
      try context.confirm("this deletes hub '\(hub.name)' with all its data for good", isConfirmed)
      try await runtime.service.deleteHub(named: hub.name)
      if management.json { return try context.printJSON(["deleted": hub.name]) }
      context.print("deleted hub \(hub.name)")
    }
  }
}

struct HubRestoreDevicesCommand: Subcommand {
  static let about = CommandHelp(
    "hub restore-devices", "restore devices that a push service has wrongly reported as dead",
    discussion: """
      When a push service reports a handle as dead, the hub removes the device and keeps it for
      seven days. If that was a mistake (a wrong credential, a fault of the service), this undoes
      it: find the wave with --dry-run, fix the credential, then restore the wave. A device whose
      app has registered again meanwhile keeps the new registration.
      """,
    examples: [
      "belfry hub restore-devices --dry-run --data belfry-data",
      "belfry hub restore-devices --hub news --platform apns --since 2030-01-31T18:00:00Z",
    ])

  let client = ClientOptions(belfryOnly: "Manage")
  @Option("--platform", "WORD", "only those of this platform: apns, fcmv1, wns …", .platform)
  var platform: PushPlatform?
  @Option(
    "--since", "TIME", "only those removed since then, such as 2030-01-31T18:00:00Z or -2h",
    .instant)
  var since: Date?
  @Flag("--dry-run", "only show what could come back, by hour") var isDryRun

  func run(in context: CommandContext) async throws {
    let access = try await client.access(
      isDryRun ? .looks("Manage") : .changes("Manage"), in: context)
    guard isDryRun else {
      let done = try await access.calling {
        try await access.client.restoreDevices(on: platform, since: since)
      }
      if client.json { return context.printJSON(written: done.json) }
      return context.print(
        "\(done.restored) registrations are back in hub \(access.hub); \(done.superseded) stay "
          + "away: their app has registered again, or their time is over")
    }
    let found = try await access.calling {
      try await access.client.removedDevices(on: platform, since: since)
    }
    if client.json { return context.printJSON(written: found.json) }
    for item in found.items {
      context.print(
        WireDate.seconds(item.hour) + "  " + item.platform.rawValue.padded(to: 8) + " "
          + item.outcome.padded(to: 16) + " " + String(item.registrations))
    }
    context.print("\(found.total) registrations could come back in hub \(access.hub)")
  }
}
