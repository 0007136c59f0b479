import Foundation
import HubCore
import NotificationHubs

/// A hub as the commands show it.
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

  var lines: [String] {
    [
      "name          \(name)",
      "created       \(createdAt)",
      "updated       \(updatedAt)",
      "status        \(disabled ? "disabled: refuses devices and sends" : "enabled")",
      "devices live  \(registrationTTL.map { "\($0) s after their last write" } ?? "for ever")",
      "policies      \(policies.joined(separator: ", "))",
      "credentials   "
        + (credentials.isEmpty
          ? "none; add one with `belfry credential set`" : credentials.joined(separator: ", ")),
    ] + (userMetadata.map { ["metadata      \($0)"] } ?? [])
  }
}

/// `belfry hub create`
struct HubCreateCommand: Subcommand {
  static let help = CommandHelp(
    "hub create", "create a hub with its default access policies",
    arguments: [("NAME", "begins with a letter; letters, digits and -._")],
    options: ManagementOptions.options + [
      .value(
        "--ttl", "TIME", "forget devices so long after their last write: 90d (default: never)")
    ], discussion: ManagementOptions.note,
    examples: ["belfry hub create news --data /var/lib/belfry"])

  let name: String
  let ttl: Int?
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    ttl = try words.seconds("--ttl", in: 86_400...Int(Int32.max))
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(.creates(name), in: context) { runtime in
      do {
        _ = try await runtime.service.createHub(
          named: name, registrationTTL: ttl.map(TimeInterval.init))
      } catch let failure as HubFailure where failure.status == 409 {
        throw CommandFailure("a hub named '\(name)' exists already")
      }
      let hub = try await runtime.hub(named: name)
      if management.json {
        try context.printJSON(try await ShownHub(hub, service: runtime.service))
      } else {
        context.print("created hub \(hub.name)")
        let place = management.words.sameHub
        context.print(
          "next: belfry credential set apns\(place) --hub \(hub.name) --key AuthKey_….p8 …")
        if !runtime.data.isServed { context.print("      belfry serve\(place)") }
        context.print("      belfry sas --connection-string\(place) --hub \(hub.name)")
      }
    }
  }
}

/// `belfry hub list`
struct HubListCommand: Subcommand {
  static let help = CommandHelp(
    "hub list", "list the hubs", options: ManagementOptions.options,
    discussion: ManagementOptions.note, examples: ["belfry hub list --json"])

  let management: ManagementOptions
  init(_ words: Words) { management = ManagementOptions(words: words) }

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
      context.print(hubs.count == 1 ? "1 hub" : "\(hubs.count) hubs")
    }
  }
}

/// `belfry hub show`
struct HubShowCommand: Subcommand {
  static let help = CommandHelp(
    "hub show", "show one hub", arguments: [("NAME", "the hub")],
    options: ManagementOptions.options, discussion: ManagementOptions.note,
    examples: ["belfry hub show news"])

  let name: String
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let shown = try await ShownHub(
        try await runtime.hub(named: name), service: runtime.service)
      if management.json { return try context.printJSON(shown) }
      for line in shown.lines { context.print(line) }
    }
  }
}

/// `belfry hub update`
struct HubUpdateCommand: Subcommand {
  static let help = CommandHelp(
    "hub update", "change a hub: how long devices live, disabled or not, its metadata",
    arguments: [("NAME", "the hub")],
    options: ManagementOptions.options + [
      .value("--ttl", "TIME", "forget devices so long after their last write: 90d; or never"),
      .flag("--disable", "refuse devices and sends until it is enabled again"),
      .flag("--enable", "take devices and sends again"),
      .value("--metadata", "TEXT", "text of your own, kept with the hub; empty takes it away"),
    ],
    discussion: """
      What is not mentioned stays. A new --ttl counts for devices from their next write on.

      \(ManagementOptions.note)
      """,
    examples: [
      "belfry hub update news --ttl 90d", "belfry hub update news --disable --json",
    ])

  let name: String
  /// `nil` leaves it, an inner `nil` is never.
  let ttl: Int??
  let isDisabled: Bool?
  let metadata: String?
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    if words.value("--ttl") == "never" {
      ttl = .some(nil)
    } else {
      ttl = try words.seconds("--ttl", in: 86_400...Int(Int32.max)).map { .some($0) }
    }
    if words.flag("--disable"), words.flag("--enable") {
      throw words.fault("--disable and --enable exclude each other")
    }
    isDisabled = words.flag("--disable") ? true : words.flag("--enable") ? false : nil
    metadata = words.value("--metadata")
    if ttl == nil, isDisabled == nil, metadata == nil {
      throw words.fault("nothing to change; give --ttl, --disable, --enable or --metadata")
    }
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(.changesHub(name), in: context) { runtime in
      let present = try await runtime.hub(named: name)
      var change = HubChange(
        registrationTTL: present.registrationTTL, isDisabled: isDisabled ?? present.isDisabled,
        userMetadata: present.userMetadata)
      if let ttl { change.registrationTTL = ttl.map(TimeInterval.init) }
      if let metadata { change.userMetadata = metadata.isEmpty ? nil : metadata }
      let hub = try await runtime.service.updateHub(named: present.name, change)
      let shown = try await ShownHub(hub, service: runtime.service)
      if management.json { return try context.printJSON(shown) }
      for line in shown.lines { context.print(line) }
    }
  }
}

/// `belfry hub delete`
struct HubDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "hub delete", "delete a hub with all its devices and notifications",
    arguments: [("NAME", "the hub")],
    options: ManagementOptions.options + [.flag("--yes", "do it without asking; there is no undo")],
    discussion: ManagementOptions.note, examples: ["belfry hub delete news --yes"])

  let name: String
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(.changesHub(name), in: context) { runtime in
      let hub = try await runtime.hub(named: name)
      try context.confirm(
        "this deletes hub '\(hub.name)' with all its data for good", management.words)
      try await runtime.service.deleteHub(named: hub.name)
      if management.json {
        try context.printJSON(["deleted": hub.name])
      } else {
        context.print("deleted hub \(hub.name)")
      }
    }
  }
}
