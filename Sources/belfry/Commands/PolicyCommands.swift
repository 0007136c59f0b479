import Foundation
import HubCore
import NotificationHubs

/// A policy as printed by the commands, with keys only on request.
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

/// The selection of the policies of a hub or of the namespace.
private struct PolicyOptions: ParameterGroup {
  let management = ManagementOptions()
  @Flag("--namespace-policy", "a policy of the namespace, which holds for every hub")
  var isOfNamespace

  /// Passes the store and the hub to a closure; `nil` for the namespace.
  func withStore<Value>(
    _ change: HubLocation.Change? = nil, in context: CommandContext,
    _ work: (HubService, String?) async throws -> Value
  ) async throws -> Value {
    let use: HubLocation.Use =
      change == nil ? .looks : isOfNamespace ? .changesNamespace : .changes
    return try await management.withStore(use, as: change, in: context) { runtime in
      try await work(
        runtime.service,
        isOfNamespace ? nil : try await management.location.hubName(runtime, in: context))
    }
  }
}

struct PolicyCreateCommand: ResultCommand {
  static let about = CommandHelp(
    "policy create", "create an access policy with random keys",
    examples: ["belfry policy create backend --hub news --rights Send"])

  @Argument("NAME", "1 to 256 URL-safe characters") var name: String
  private let options = PolicyOptions()
  @Option(
    required: "--rights", "LIST",
    "Listen, Send, Manage; separated by commas (Manage is all three)",
    Reader(words: ["Listen", "Send", "Manage"]) { text, _ throws(UsageError) in
      var rights: AccessRights = []
      for word in TextInput.list(text) {
        guard let right = AccessRights(word: word) else {
          throw UsageError("'\(word)' is not a right; the rights are Listen, Send and Manage")
        }
        rights.formUnion(right)
      }
      return rights
    }) var rights: AccessRights

  func result(in context: CommandContext) async throws -> CommandResult {
    try await options.withStore((.createPolicy, name), in: context) { service, hub in
      let policy = try await service.policies.create(named: name, rights: rights, hub: hub)
      return CommandResult(
        ShownPolicy(policy, keys: true),
        [
          "created policy \(policy.name) (\(policy.rights.words.joined(separator: ", ")))",
          "see its connection string: belfry sas --connection-string"
            + "\(options.management.location.options) --policy \(policy.name)",
        ])
    }
  }
}

struct PolicyListCommand: ResultCommand {
  static let about = CommandHelp(
    "policy list", "list the access policies",
    examples: ["belfry policy list --hub news"])

  private let options = PolicyOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    try await options.withStore(in: context) { service, hub in
      let shown = try await service.policies.list(hub: hub).map { ShownPolicy($0, keys: false) }
      return CommandResult(
        ["policies": shown],
        shown.map(\.line) + [shown.count.counted("policy", "policies")])
    }
  }
}

struct PolicyShowCommand: ResultCommand {
  static let about = CommandHelp(
    "policy show", "show an access policy with its keys",
    examples: ["belfry policy show DefaultFullSharedAccessSignature --hub news"])

  @Argument("NAME", "the policy") var name: String
  private let options = PolicyOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    try await options.withStore(in: context) { service, hub in
      let policy = try await service.policies.get(named: name, hub: hub)
      return CommandResult(
        ShownPolicy(policy, keys: true),
        [
          "name           \(policy.name)",
          "rights         \(policy.rights.words.joined(separator: ", "))",
          "primary key    \(policy.primaryKey)", "secondary key  \(policy.secondaryKey)",
        ])
    }
  }
}

struct PolicyDeleteCommand: ResultCommand {
  static let about = CommandHelp(
    "policy delete", "delete an access policy; its tokens stop working",
    examples: ["belfry policy delete backend --hub news"])

  @Argument("NAME", "the policy") var name: String
  private let options = PolicyOptions()

  func result(in context: CommandContext) async throws -> CommandResult {
    try await options.withStore((.deletePolicy, name), in: context) { service, hub in
      try await service.policies.delete(named: name, hub: hub)
      return CommandResult(["deleted": name], ["deleted policy \(name)"])
    }
  }
}

struct PolicyRotateCommand: ResultCommand {
  static let about = CommandHelp(
    "policy rotate", "replace one key of an access policy by a new one",
    discussion: """
      Tokens made with the replaced key stop working at once; those of the other key stay valid. So
      rotate the key that clients do not use, switch the clients to it, then rotate the other.
      """,
    examples: ["belfry policy rotate backend --hub news --key secondary"])

  @Argument("NAME", "the policy") var name: String
  private let options = PolicyOptions()
  @Option("--key", "primary|secondary", "which of the two keys", .word)
  var slot = HubPolicies.KeySlot.secondary

  func result(in context: CommandContext) async throws -> CommandResult {
    try await options.withStore((.rotateKey, name), in: context) { service, hub in
      let policy = try await service.policies.rotateKey(slot, ofPolicy: name, hub: hub)
      return CommandResult(
        ShownPolicy(policy, keys: true), ["rotated the \(slot.rawValue) key of \(policy.name)"])
    }
  }
}

struct SASCommand: ResultCommand {
  static let about = CommandHelp(
    "sas", "print a shared access signature, or a connection string",
    discussion: """
      A token goes into the header Authorization. Give it to a device or a script that must not have
      the key itself.
      """,
    examples: [
      "curl -H \"Authorization: $(belfry sas --data belfry-data)\" …",
      "belfry sas --data belfry-data --connection-string "
        + "--policy DefaultListenSharedAccessSignature",
    ])

  let client = ClientOptions()
  @Flag("--connection-string", "print the policy's connection string in place of a token")
  var isConnectionString
  @Option("--policy", "NAME", "of a data directory: which policy (default the hub's full access)")
  var policy: String?
  @Option(
    "--endpoint", "URL", "of a data directory: the address that clients use",
    Reader { text, name throws(UsageError) in
      if let endpoint = ServiceEndpoint(parsing: text) { return endpoint }
      throw UsageError(
        "\(name) must be an address with its scheme, such as https://push.example.com, not '\(text)'"
      )
    }) var endpoint: ServiceEndpoint?
  @Option(
    "--ttl", "TIME", "how long the token is valid: 90s, 12h, 7d", .time(1...Int(Int32.max)))
  var ttl = 3600
  @Option("--resource", "URL", "what the token opens (default the whole hub)")
  var resource: String?

  func result(in context: CommandContext) async throws -> CommandResult {
    let access = try await access(in: context)
    if isConnectionString {
      let text = access.connection.text
      return CommandResult(["connectionString": text, "hub": access.hub], [text])
    }
    let token = access.connection.token(
      for: resource ?? access.connection.endpoint.resource(hub: access.hub),
      lifetime: TimeInterval(ttl))
    return CommandResult(
      ["token": token.text, "expiresAt": token.expiresAt.formatted(.iso8601)], [token.text])
  }

  private func access(in context: CommandContext) async throws -> HubAccess {
    let target = try client.location.target(in: context)
    guard case .directory(let directory) = target.location else {
      let options: [any Parameter] = [$policy, $endpoint]
      if let option = options.first(where: \.isGiven) {
        throw UsageError(
          "\(option.declaration.name) is for a data directory, not for a connection string")
      }
      return try await client.access(.changes, in: context)
    }
    _ = try DataDirectory.existing(at: directory.path)
    try target.checkIsHere(context.environment)
    guard let endpoint = endpoint ?? directory.servedEndpoint else {
      throw UsageError(
        "no server runs on \(directory.path) at the moment; say where clients reach it: --endpoint")
    }
    let access = try await client.location.open(directory, in: context) { runtime in
      let hub = try await client.location.hubName(runtime, in: context)
      let name = policy ?? AccessPolicy.defaultFullName
      let isOfHub = try await runtime.service.policies.list(hub: hub).contains { $0.name == name }
      let policy = try await runtime.service.policies.get(named: name, hub: isOfHub ? hub : nil)
      return HubAccess(
        connection: policy.connectionString(endpoint: endpoint), hub: hub)
    }
    target.announce(changes: true, hub: access.hub, at: endpoint.url, in: context)
    return access
  }
}

extension ConnectionString {
  /// Creates a token signed with the policy's key.
  ///
  /// - Parameter lifetime: The lifetime in seconds from now.
  func token(for resource: String, lifetime: TimeInterval) -> SharedAccessSignature {
    SharedAccessSignature(
      resource: resource, keyName: keyName, key: key,
      expiresAt: Date().addingTimeInterval(lifetime))
  }
}
