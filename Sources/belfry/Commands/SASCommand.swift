import Foundation
import HubCore
import NotificationHubs

/// `belfry sas`
struct SASCommand: Subcommand {
  static let help = CommandHelp(
    "sas", "print a shared access signature, or a connection string",
    options: ClientOptions.options + [
      .flag("--connection-string", "print the policy's connection string in place of a token"),
      .value(
        "--policy", "NAME", "of a data directory: which policy (default the hub's full access)"),
      .value("--endpoint", "URL", "of a data directory: the address that clients use"),
      .value("--ttl", "TIME", "how long the token is good: 90s, 12h, 7d (default 1h)"),
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
    ttl = try words.seconds("--ttl", in: 1...Int(Int32.max)) ?? 3600
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

  private func access(in context: CommandContext) async throws -> ClientOptions.Access {
    let target = try client.target(in: context)
    guard case .directory(let directory) = target.place else {
      if let option = ["--policy", "--endpoint"].first(where: words.flag) {
        throw words.fault("\(option) is for a data directory, not for a connection string")
      }
      return try await client.access(.changes("Listen"), in: context)
    }
    _ = try DataDirectory.existing(at: directory.path)
    try target.checkIsHere(words, environment: context.environment)
    let address = words.value("--endpoint") ?? (directory.isServed ? directory.address : nil)
    if let text = words.value("--endpoint"), ServiceEndpoint(parsing: text) == nil {
      throw words.fault(
        "--endpoint wants an address with its scheme, such as https://push.example.com, not '\(text)'"
      )
    }
    guard let address, let endpoint = ServiceEndpoint(parsing: address) else {
      throw words.fault(
        "no server runs on \(directory.path) at the moment; say where clients reach it: --endpoint")
    }
    let management = ManagementOptions(words: words)
    let access = try await management.open(directory, in: context) { runtime in
      let hub = try await management.hubName(runtime, in: context)
      let name = words.value("--policy") ?? AccessPolicy.defaultFullName
      let isOfHub = try await runtime.service.policies(hub: hub).contains { $0.name == name }
      let policy = try await runtime.service.policy(named: name, hub: isOfHub ? hub : nil)
      return ClientOptions.Access(
        connection: policy.connectionString(endpoint: endpoint), hub: hub, right: "Listen")
    }
    target.announce(changes: true, hub: access.hub, at: endpoint.url, in: context)
    return access
  }
}
