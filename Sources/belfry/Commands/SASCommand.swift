import Foundation
import HubCore
import NotificationHubs

/// `belfry sas`
struct SASCommand: Subcommand {
  static let help = CommandHelp(
    "sas", "print a shared access signature, or a connection string",
    options: ClientOptions.options + [
      .flag("--connection-string", "print the policy's connection string in place of a token"),
      .value("--policy", "NAME", "with --data: which policy (default the hub's full access)"),
      .value("--endpoint", "URL", "with --data: the address that clients use"),
      .value("--ttl", "SECONDS", "how long the token is good (default 3600)"),
      .value("--resource", "URL", "what the token opens (default the whole hub)"),
    ],
    discussion: """
      A token goes into the header Authorization. It can be handed to a device or a script that
      must not have the key itself.

      \(ClientOptions.note)
      """,
    examples: [
      "curl -H \"Authorization: $(belfry sas --data belfry-data)\" …",
      "belfry sas --data belfry-data --connection-string "
        + "--policy DefaultListenSharedAccessSignature",
    ])

  let client: ClientOptions
  let words: Words
  let ttl: Int

  init(_ words: Words) throws {
    client = ClientOptions(words: words)
    self.words = words
    ttl = try words.integer("--ttl", in: 1...Int(Int32.max)) ?? 3600
  }

  func run(in context: CommandContext) async throws {
    let access = try await access(in: context)
    if words.flag("--connection-string") {
      let text = access.connection.text
      return client.json
        ? try context.printJSON(["connectionString": text, "hub": access.hub]) : context.print(text)
    }
    let expiry = Date().addingTimeInterval(TimeInterval(ttl))
    let token = SharedAccessSignature(
      resource: words.value("--resource")
        ?? access.connection.endpoint.resource(hub: access.hub),
      keyName: access.connection.keyName, key: access.connection.key, expiresAt: expiry)
    if client.json {
      try context.printJSON(["token": token.text, "expiresAt": token.expiresAt.formatted(.iso8601)])
    } else {
      context.print(token.text)
    }
  }

  /// The data directory here, also when no server runs on it.
  private static func idleData(_ context: CommandContext) -> String? {
    let path = context.environment[Setting.data.variable] ?? "belfry-data"
    return (try? DataDirectory.existing(at: path)) == nil ? nil : path
  }

  private func access(in context: CommandContext) async throws -> ClientOptions.Access {
    guard words.value("--policy") != nil || words.value("--endpoint") != nil,
      words.value("--connection") == nil,
      let path = words.value("--data") ?? ClientOptions.standardData(context)
        ?? Self.idleData(context)
    else { return try await client.access(in: context) }
    let directory = try DataDirectory.existing(at: path)
    let address = words.value("--endpoint") ?? directory.address
    guard let address, let endpoint = ServiceEndpoint(parsing: address) else {
      throw words.fault(
        "no server runs there at the moment; say where clients reach it: --endpoint")
    }
    let management = ManagementOptions(words: words)
    return try await management.withHub(data: path, in: context) { runtime in
      let hub = try await management.hubName(runtime)
      let name = words.value("--policy") ?? AccessPolicy.defaultFullName
      let isOfHub = try await runtime.service.policies(hub: hub).contains { $0.name == name }
      let policy = try await runtime.service.policy(named: name, hub: isOfHub ? hub : nil)
      return ClientOptions.Access(
        connection: policy.connectionString(endpoint: endpoint), hub: hub)
    }
  }
}
