import Foundation
import HubCore
import NotificationHubs

/// A policy as the commands show it; keys only when asked for.
private struct ShownPolicy: Encodable {
  let name: String
  let rights: [String]
  let primaryKey: String?
  let secondaryKey: String?
  let modifiedAt: String

  init(_ policy: AccessPolicy, keys: Bool) {
    name = policy.name
    rights = policy.rights.words
    primaryKey = keys ? policy.primaryKey : nil
    secondaryKey = keys ? policy.secondaryKey : nil
    modifiedAt = policy.modifiedAt.formatted(.iso8601)
  }

  var line: String { name.padded(to: 40) + " " + rights.joined(separator: ", ") }
}

private let scopeOptions: [Option] = [
  ManagementOptions.hub,
  .flag("--namespace-policy", "a policy of the namespace, which holds for every hub"),
]

extension ManagementOptions {
  /// The hub that policies are meant of; `nil` for those of the namespace.
  fileprivate func policyHub(
    _ runtime: HubRuntime, in context: CommandContext
  ) async throws -> String? {
    words.flag("--namespace-policy") ? nil : try await hubName(runtime, in: context)
  }
}

/// `belfry policy create`
struct PolicyCreateCommand: Subcommand {
  static let help = CommandHelp(
    "policy create", "create an access policy with random keys",
    arguments: [("NAME", "1 to 256 URL-safe characters")],
    options: ManagementOptions.options + scopeOptions + [
      .value(
        "--rights", "LIST", "Listen, Send, Manage; separated by commas (Manage is all three)",
        words: ["Listen", "Send", "Manage"])
    ], discussion: ManagementOptions.note,
    examples: ["belfry policy create backend --hub news --rights Send"])

  let name: String
  let rights: AccessRights
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    management = ManagementOptions(words: words)
    var rights: AccessRights = []
    for word in try words.required("--rights").split(separator: ",") {
      guard let right = AccessRights(word: word.trimmingCharacters(in: .whitespaces)) else {
        throw words.fault("'\(word)' is no right; they are Listen, Send and Manage")
      }
      rights.formUnion(right)
    }
    self.rights = rights
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(.changes, in: context) { runtime in
      let policy = try await runtime.service.createPolicy(
        named: name, rights: rights, hub: try await management.policyHub(runtime, in: context))
      if management.json { return try context.printJSON(ShownPolicy(policy, keys: true)) }
      context.print(
        "created policy \(policy.name) (\(policy.rights.words.joined(separator: ", ")))")
      context.print(
        "see its connection string: belfry sas --connection-string\(management.words.sameHub) --policy "
          + policy.name)
    }
  }
}

/// `belfry policy list`
struct PolicyListCommand: Subcommand {
  static let help = CommandHelp(
    "policy list", "list the access policies", options: ManagementOptions.options + scopeOptions,
    discussion: ManagementOptions.note, examples: ["belfry policy list --hub news"])

  let management: ManagementOptions
  init(_ words: Words) { management = ManagementOptions(words: words) }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let policies = try await runtime.service.policies(
        hub: try await management.policyHub(runtime, in: context))
      let shown = policies.map { ShownPolicy($0, keys: false) }
      if management.json { return try context.printJSON(["policies": shown]) }
      for policy in shown { context.print(policy.line) }
      context.print(shown.count == 1 ? "1 policy" : "\(shown.count) policies")
    }
  }
}

/// `belfry policy show`
struct PolicyShowCommand: Subcommand {
  static let help = CommandHelp(
    "policy show", "show an access policy with its keys", arguments: [("NAME", "the policy")],
    options: ManagementOptions.options + scopeOptions, discussion: ManagementOptions.note,
    examples: ["belfry policy show DefaultFullSharedAccessSignature --hub news"])

  let name: String
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(in: context) { runtime in
      let policy = try await runtime.service.policy(
        named: name, hub: try await management.policyHub(runtime, in: context))
      if management.json { return try context.printJSON(ShownPolicy(policy, keys: true)) }
      context.print("name           \(policy.name)")
      context.print("rights         \(policy.rights.words.joined(separator: ", "))")
      context.print("primary key    \(policy.primaryKey)")
      context.print("secondary key  \(policy.secondaryKey)")
    }
  }
}

/// `belfry policy delete`
struct PolicyDeleteCommand: Subcommand {
  static let help = CommandHelp(
    "policy delete", "delete an access policy; its tokens stop working",
    arguments: [("NAME", "the policy")], options: ManagementOptions.options + scopeOptions,
    discussion: ManagementOptions.note, examples: ["belfry policy delete backend --hub news"])

  let name: String
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(.changes, in: context) { runtime in
      try await runtime.service.deletePolicy(
        named: name, hub: try await management.policyHub(runtime, in: context))
      if management.json { return try context.printJSON(["deleted": name]) }
      context.print("deleted policy \(name)")
    }
  }
}

/// `belfry policy rotate`
struct PolicyRotateCommand: Subcommand {
  static let help = CommandHelp(
    "policy rotate", "replace one key of an access policy by a new one",
    arguments: [("NAME", "the policy")],
    options: ManagementOptions.options + scopeOptions + [
      .value(
        "--key", "primary|secondary", "which of the two keys (default secondary)",
        words: ["primary", "secondary"])
    ],
    discussion: """
      Tokens made with the replaced key stop working at once; those of the other key go on. So
      rotate the key that clients do not use, move them over, then rotate the other.

      \(ManagementOptions.note)
      """,
    examples: ["belfry policy rotate backend --hub news --key secondary"])

  let name: String
  let slot: HubService.KeySlot
  let management: ManagementOptions

  init(_ words: Words) throws {
    name = try words.argument(0)
    guard let slot = HubService.KeySlot(rawValue: words.value("--key") ?? "secondary") else {
      throw words.fault("--key wants primary or secondary")
    }
    self.slot = slot
    management = ManagementOptions(words: words)
  }

  func run(in context: CommandContext) async throws {
    try await management.withHub(.changes, in: context) { runtime in
      let policy = try await runtime.service.rotateKey(
        slot, ofPolicy: name, hub: try await management.policyHub(runtime, in: context))
      if management.json { return try context.printJSON(ShownPolicy(policy, keys: true)) }
      context.print("rotated the \(slot.rawValue) key of \(policy.name)")
    }
  }
}
