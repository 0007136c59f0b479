import Foundation
import HubCore
import NotificationHubs
import Wire

/// A hub as printed by the commands.
private struct ShownHub: Encodable {
  let name: String
  let createdAt: String?
  let registrationTTL: Int?
  let disabled: Bool
  let userMetadata: String?
  let updatedAt: String?
  let policies: [String]
  let credentials: [String]

  init(_ hub: HubDescription) {
    name = hub.name
    createdAt = hub.createdTime?.formatted(.iso8601)
    registrationTTL = hub.registrationTTL.map { Int($0) }
    disabled = hub.isDisabled
    userMetadata = hub.userMetadata
    updatedAt = hub.updatedTime?.formatted(.iso8601)
    policies = hub.authorizationRules?.map(\.keyName) ?? []
    credentials = hub.credentials.keys.map(\.rawValue).sorted()
  }

  var result: CommandResult {
    let lines = [
      "name          \(name)",
      "created       \(createdAt ?? "")",
      "updated       \(updatedAt ?? "")",
      "status        \(disabled ? "disabled: refuses devices and sends" : "enabled")",
      "devices live  \(registrationTTL.map { "\($0) s after their last write" } ?? "forever")",
      "policies      \(policies.joined(separator: ", "))",
      "credentials   "
        + (credentials.isEmpty
          ? "none; add one with `belfry credential set`" : credentials.joined(separator: ", ")),
    ]
    return CommandResult(self, lines + (userMetadata.map { ["metadata      \($0)"] } ?? []))
  }

  /// A row of a list.
  var line: String {
    "\(name.padded(to: 24)) \(createdAt ?? "")  credentials: "
      + (credentials.isEmpty ? "none" : credentials.joined(separator: ", "))
      + (disabled ? "  (disabled)" : "")
  }
}

extension HubAccess {
  /// The description of a hub.
  /// - Throws: ``CommandFailure`` that lists the existing hubs, where the key may list them; else
  ///   `UsageError` for a name that no hub can have.
  func description(of name: String) async throws -> HubDescription {
    do {
      guard HubDescription.isName(name) else { throw NotificationHubError(kind: .notFound) }
      return try await namespace.hub(name)
    } catch let error as NotificationHubError where error.kind == .notFound {
      guard let known = try? await namespace.hubs() else {
        _ = try Reader.hubName.read(name, "NAME")
        throw error
      }
      throw CommandFailure(unknownHub: name, of: known.map(\.name))
    }
  }
}

/// The lifetime of devices after their last write.
private let lifetime = Reader.time(86_400...Int(Int32.max))

struct HubCreateCommand: ResultCommand {
  static let about = CommandHelp(
    "hub create", "create a hub with its default access policies",
    examples: ["belfry hub create news --data /var/lib/belfry"])

  @Argument("NAME", "begins with a letter; letters, digits and -._", .hubName) var name: String
  let client = ClientOptions(naming: .none, directoryAccess: .inProcess)
  @Option(
    "--ttl", "TIME", "forget devices so long after their last write: 90d (default: never)", lifetime
  )
  var ttl: Int?

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(.creates(name), in: context) { access in
      let hub: HubDescription
      do {
        hub = try await access.namespace.create(
          HubDescription(name: name, registrationTTL: ttl.map(TimeInterval.init)))
      } catch let error as NotificationHubError where error.kind == .conflict {
        throw CommandFailure("a hub named '\(name)' exists already")
      }
      let hubOptions = client.location.options
      var lines = ["created hub \(hub.name)"]
      if let runtime = access.runtime {
        lines.append(
          "next: belfry credential set apns\(hubOptions) --hub \(hub.name) --key AuthKey_….p8 …")
        if !runtime.data.isServed { lines.append("      belfry serve\(hubOptions)") }
        lines.append("      belfry sas --connection-string\(hubOptions) --hub \(hub.name)")
      }
      return CommandResult(ShownHub(hub), lines)
    }
  }
}

struct HubListCommand: ResultCommand {
  static let about = CommandHelp(
    "hub list", "list the hubs",
    examples: ["belfry hub list --json"])

  let client = ClientOptions(naming: .none, directoryAccess: .inProcess)

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(in: context) { access in
      let hubs = try await access.namespace.hubs().map(ShownHub.init)
      return CommandResult(["hubs": hubs], hubs.map(\.line) + [hubs.count.counted("hub")])
    }
  }
}

struct HubShowCommand: ResultCommand {
  static let about = CommandHelp(
    "hub show", "show one hub",
    examples: ["belfry hub show news"])

  @Argument("NAME", "the hub") var name: String
  let client = ClientOptions(naming: .none, directoryAccess: .inProcess)

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(in: context) { access in
      ShownHub(try await access.description(of: name)).result
    }
  }
}

struct HubUpdateCommand: ResultCommand {
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

  func result(in context: CommandContext) async throws -> CommandResult {
    try UsageError.check(exclusive: $disables, $enables)
    if ttl == nil, !disables, !enables, metadata == nil {
      throw UsageError("nothing to change; give --ttl, --disable, --enable or --metadata")
    }
    return try await management.withStore(.changesHub(name), as: (.updateHub, nil), in: context) {
      runtime in
      let present = try await runtime.hub(named: name)
      var change = HubChange(
        registrationTTL: present.registrationTTL,
        isDisabled: disables || present.isDisabled && !enables,
        userMetadata: present.userMetadata)
      if let ttl { change.registrationTTL = ttl.map(TimeInterval.init) }
      if let metadata { change.userMetadata = metadata.isEmpty ? nil : metadata }
      _ = try await runtime.service.updateHub(named: present.name, change)
      return ShownHub(
        try await runtime.client(in: context).description(of: present.name)
      ).result
    }
  }
}

struct HubDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "hub delete", "delete a hub with all its devices and notifications",
    examples: ["belfry hub delete news --yes"])

  @Argument("NAME", "the hub") var name: String
  let client = ClientOptions(naming: .none, directoryAccess: .inProcess)
  @Flag("--yes", "do it without asking; there is no undo") var isConfirmed

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(.changesHub(name), in: context) { access in
      let hub = try await access.description(of: name).name
      try context.confirm("this deletes hub '\(hub)' with all its data for good", isConfirmed)
      try await access.namespace.delete(hub: hub)
      return CommandResult(["deleted": hub], ["deleted hub \(hub)"])
    }
  }
}

struct HubRestoreDevicesCommand: ResultCommand {
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

  func result(in context: CommandContext) async throws -> CommandResult {
    try await client.withHub(isDryRun ? .looks : .changes, in: context) { access in
      guard isDryRun else {
        let done = try await access.client.restoreDevices(on: platform, since: since)
        return CommandResult(
          written: done.json,
          [
            "\(done.restored) registrations are back in hub \(access.hub); \(done.superseded) stay "
              + "away: their app has registered again, or their time is over"
          ])
      }
      let found = try await access.client.removedDevices(on: platform, since: since)
      let rows = found.items.map { item in
        WireDate.seconds(item.hour) + "  " + item.platform.rawValue.padded(to: 8) + " "
          + item.outcome.padded(to: 16) + " " + String(item.registrations)
      }
      return CommandResult(
        written: found.json,
        rows + ["\(found.total) registrations could come back in hub \(access.hub)"])
    }
  }
}
