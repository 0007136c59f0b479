import Foundation
import HubCore
import NotificationHubs

/// What the commands share that talk to a hub over HTTP: which hub, and with which key.
struct ClientOptions: Sendable {
  static let options: [Option] = [
    .value(
      "--connection", "STRING",
      "the connection string of an access policy (or BELFRY_CONNECTION_STRING)"),
    .value(
      "--ca", "FILE",
      "with --connection: trust this authority, PEM, and speak TLS (or BELFRY_CA)"),
    .value("--hub", "NAME", "the hub (or BELFRY_HUB; may be left out with --data and one hub)"),
    .value("--data", "DIR", "take address and key from the data directory of a server that runs"),
    .flag("--json", "print one JSON value for scripts"),
  ]

  static let note = """
    The hub may be Belfry's or Azure's. Name it by connection string and hub, on the command line
    or in BELFRY_CONNECTION_STRING and BELFRY_HUB; or, on the machine of a running Belfry, by --data.
    Without any of these it is the server on ./belfry-data, or the `belfry up` that runs.
    """

  let words: Words
  var json: Bool { words.flag("--json") }

  /// Where the hub is and how to get in.
  struct Access: Sendable {
    let connection: ConnectionString
    let hub: String
    var transport: any HTTPTransport = ClientTransport.shared

    var client: NotificationHubClient {
      NotificationHubClient(connectionString: connection, hub: hub, transport: transport)
    }
  }

  func access(in context: CommandContext) async throws -> Access {
    if let path = words.value("--data") {
      guard !words.flag("--ca") else {
        throw words.fault("--ca goes with --connection; --data needs none")
      }
      return try await access(data: path, in: context)
    }
    guard
      let text = words.value("--connection") ?? context.environment["BELFRY_CONNECTION_STRING"]
    else {
      guard let path = Self.standardData(context) else {
        throw words.fault(
          "which hub? Give --connection STRING and --hub NAME, or --data DIR on the machine where "
            + "Belfry runs")
      }
      return try await access(data: path, in: context)
    }
    guard let hub = words.value("--hub") ?? context.environment["BELFRY_HUB"] else {
      throw words.fault("--hub is missing")
    }
    let connection: ConnectionString
    do { connection = try ConnectionString(text) } catch { throw words.fault("\(error)") }
    guard let authority = words.value("--ca") ?? context.environment["BELFRY_CA"] else {
      return Access(connection: connection, hub: hub)
    }
    return Access(
      connection: connection.overTLS, hub: hub,
      transport: try ClientTransport(trusting: authority))
  }

  /// The data directory that is meant when nothing was said: that of the server here, or of the
  /// `belfry up` that runs.
  static func standardData(_ context: CommandContext) -> String? {
    let here = context.environment[Setting.data.variable] ?? "belfry-data"
    if DataDirectory(path: URL(fileURLWithPath: here).standardizedFileURL.path).isServed {
      return here
    }
    return RunningUp.find(context.environment)?.data
  }

  private func access(data path: String, in context: CommandContext) async throws -> Access {
    let directory = try DataDirectory.existing(at: path)
    guard let address = directory.address, let endpoint = ServiceEndpoint(parsing: address) else {
      throw CommandFailure(
        "no server runs on \(directory.path) at the moment; start `belfry serve --data "
          + "\(directory.path)` or `belfry up --data \(directory.path)`", exitCode: .unreachable)
    }
    let management = ManagementOptions(words: words)
    return try await management.withHub(data: path, in: context) { runtime in
      let hub = try await management.hubName(runtime)
      let policy = try await runtime.service.policy(
        named: AccessPolicy.defaultFullName, hub: hub)
      return Access(
        connection: policy.connectionString(endpoint: endpoint), hub: hub)
    }
  }

  /// Calls the hub; its refusals become failures with its own reason.
  func calling<Value>(_ work: () async throws -> Value) async throws -> Value {
    do {
      return try await work()
    } catch let error as NotificationHubError {
      let isAway = error.kind == .unreachable || error.kind == .unexpectedReply
      throw CommandFailure(
        (isAway ? "cannot reach the hub: " : "the hub refused: ") + error.description,
        exitCode: isAway ? .unreachable : .refused)
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
