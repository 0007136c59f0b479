import Foundation
import HTTPClient
import HubCore
import NotificationHubs

/// What the commands share that talk to a hub over HTTP: which hub, and with which key.
struct ClientOptions: Sendable {
  static let options: [Option] = [
    .value("--hub", "NAME", "the hub (or BELFRY_HUB; not needed where there is only one)"),
    .value(
      "--connection", "STRING",
      "the connection string of an access policy (or BELFRY_CONNECTION_STRING)"),
    .value(
      "--ca", "FILE",
      "with a connection string: trust this authority, PEM, and speak TLS (or BELFRY_CA)"),
    .value("--data", "DIR", "the data directory of a server that runs (or BELFRY_DATA)"),
    .value("--config", "FILE", "a configuration file, which names the data directory"),
    .flag("--json", "print one JSON value for scripts"),
  ]

  static let note = "The hub may be Belfry's or Azure's. " + HubTarget.note

  let words: Words
  var json: Bool { words.flag("--json") }

  /// What a command does, and the right that this takes.
  struct Use: Sendable {
    let changes: Bool
    let right: String
    static func looks(_ right: String) -> Use { Use(changes: false, right: right) }
    static func changes(_ right: String) -> Use { Use(changes: true, right: right) }
  }

  /// Where the hub is and how to get in.
  struct Access: Sendable {
    let connection: ConnectionString
    let hub: String
    let right: String
    var transport: any HTTPTransport = ClientTransport.shared
    /// The file with the authority that is trusted beside the system's.
    var authority: String?

    var client: NotificationHubClient {
      NotificationHubClient(connectionString: connection, hub: hub, transport: transport)
    }

    /// Calls the hub; its refusals become failures with its own reason.
    func calling<Value>(_ work: () async throws -> Value) async throws -> Value {
      do {
        return try await work()
      } catch let error as NotificationHubError {
        let isAway = error.kind == .unreachable || error.kind == .unexpectedReply
        throw CommandFailure(
          (isAway ? "cannot reach the hub: " : "the hub refused: ") + error.description
            + hint(error), exitCode: isAway ? .unreachable : .refused)
      }
    }

    private func hint(_ error: NotificationHubError) -> String {
      let file =
        "`belfry up` prints it as CA, `belfry serve --tls-self-signed` has it as tls-ca.pem "
        + "in its data directory"
      switch (error.underlying as? HTTPFailure)?.kind {
      case .tls where authority == nil:
        return
          ". If its certificate is of an authority of your own, name that with --ca FILE; \(file)"
      case .tls:
        return
          ". The certificate is not of the authority in \(authority ?? ""), or for another host"
      case .reset where !connection.endpoint.usesTLS:
        return ". It was asked in plain HTTP; if this is its HTTPS port, give --ca FILE: \(file)"
      default: break
      }
      guard error.kind == .unauthorized else { return "" }
      return error.status == 403
        ? ". The policy \(connection.keyName) lacks the right \(right), which this takes"
        : ". Compare the key with that of `belfry policy show \(connection.keyName)`, and whether "
          + "the hub is called \(hub)"
    }
  }

  func target(in context: CommandContext) throws -> HubTarget {
    if let target = try HubTarget.find(words, environment: context.environment) { return target }
    throw words.fault(
      "which hub? There is no ./\(HubTarget.standardData) and no `belfry up` runs. Give --connection "
        + "STRING and --hub NAME, or --data DIR on the machine where Belfry runs")
  }

  func access(_ use: Use, in context: CommandContext) async throws -> Access {
    let target = try target(in: context)
    if use.changes { try target.checkIsHere(words, environment: context.environment) }
    let access: Access
    switch target.place {
    case .directory(let directory):
      guard !words.flag("--ca") else {
        throw words.fault("--ca goes with a connection string; \(target.origin) needs none")
      }
      access = try await self.access(directory, use, in: context)
    case .connection(let connection):
      access = try self.access(connection, use, in: context)
    }
    target.announce(
      changes: use.changes, hub: access.hub, at: access.connection.endpoint.url, in: context)
    return access
  }

  private func access(
    _ connection: ConnectionString, _ use: Use, in context: CommandContext
  ) throws -> Access {
    guard let hub = words.value("--hub") ?? context.environment["BELFRY_HUB"] else {
      throw words.fault("--hub is missing: a connection string does not name the hub")
    }
    guard let authority = words.value("--ca") ?? context.environment["BELFRY_CA"] else {
      return Access(connection: connection, hub: hub, right: use.right)
    }
    return Access(
      connection: connection.overTLS, hub: hub, right: use.right,
      transport: try ClientTransport(trusting: authority), authority: authority)
  }

  private func access(
    _ directory: DataDirectory, _ use: Use, in context: CommandContext
  ) async throws -> Access {
    _ = try DataDirectory.existing(at: directory.path)
    guard directory.isServed, let address = directory.address,
      let endpoint = ServiceEndpoint(parsing: address)
    else {
      let other = RunningUp.last(context.environment).map {
        ". The running `belfry up` is --data \($0.data)"
      }
      throw CommandFailure(
        "no server runs on \(directory.path) at the moment; start `belfry serve --data "
          + "\(directory.path)` or `belfry up --data \(directory.path)`" + (other ?? ""),
        exitCode: .unreachable)
    }
    let management = ManagementOptions(words: words)
    return try await management.open(directory, in: context) { runtime in
      let hub = try await management.hubName(runtime, in: context)
      let policy = try await runtime.service.policy(
        named: AccessPolicy.defaultFullName, hub: hub)
      return Access(
        connection: policy.connectionString(endpoint: endpoint), hub: hub, right: use.right)
    }
  }
}

extension ConnectionString {
  /// The same with TLS: `sb` with a loopback host and a port reads as plain HTTP otherwise, and those
  /// that `belfry up` prints for its HTTPS port have that form.
  fileprivate var overTLS: ConnectionString {
    guard !endpoint.usesTLS, let scheme = endpoint.url.firstRange(of: "://"),
      let secure = ServiceEndpoint(parsing: "https://" + endpoint.url[scheme.upperBound...])
    else { return self }
    return ConnectionString(endpoint: secure, keyName: keyName, key: key)
  }
}
