import Foundation
import HubCore
import NotificationHubs

/// The common options of commands that are clients of a hub: over HTTP, or in process for a data
/// directory.
struct ClientOptions: ParameterGroup {
  @Option("--hub", "NAME", "the hub (or BELFRY_HUB; not needed where there is only one)")
  var hub: String?
  @Option(
    "--connection", "STRING",
    "the connection string of an access policy (or BELFRY_CONNECTION_STRING)")
  var connection: String?
  @Option(
    "--ca", "FILE",
    "with a connection string: trust this authority, PEM, and speak TLS (or BELFRY_CA)")
  var ca: String?
  @Option var data: String?
  @Option("--config", "FILE", "a configuration file, which names the data directory")
  var config: String?
  @Flag("--json", "print one JSON value for scripts") var json

  let note: String
  private let naming: HubNaming
  private let directoryAccess: DirectoryAccess
  private let settings: SettingOptions

  /// The way in which a command names its hub.
  enum HubNaming: Sendable {
    case option
    /// Without `--hub` it is for the whole namespace.
    case optional
    /// An argument names a hub, or the command is for all of them.
    case none
  }

  /// The access of a command to the hub of a data directory.
  enum DirectoryAccess: Sendable {
    /// Asks a running server; without one, the command itself is the hub.
    case either
    /// Only a running server delivers.
    case server
    /// Opens the store beside a running server, too: for hubs, credentials and the activity log.
    case inProcess
  }

  var parameters: [any Parameter] {
    (naming == .none ? [] : [_hub]) + [_connection, _ca, _data, _config, _json]
      + settings.parameters
  }

  /// - Parameters:
  ///   - right: The right for a command that only Belfry supports; `nil` if Azure supports it too.
  ///   - settings: The settings of the server that the command accepts for a data directory.
  init(
    belfryOnly right: String? = nil, naming: HubNaming = .option,
    directoryAccess: DirectoryAccess = .either,
    settings: [Setting] = []
  ) {
    _data = Option(
      "--data", "DIR",
      "the data directory of \(directoryAccess == .server ? "a server that runs" : "the hub") (or BELFRY_DATA)"
    )
    self.naming = naming
    self.directoryAccess = directoryAccess
    self.settings = SettingOptions(settings)
    note =
      (right.map { "Belfry only; needs the \($0) right. " }
        ?? "The hub may be Belfry's or Azure's. ")
      + (directoryAccess == .server ? "" : "A data directory needs no running server. ")
      + HubTarget.note
  }

  var location: HubLocation {
    HubLocation(
      connection: connection, data: data, config: config, hub: hub, settings: settings.given)
  }

  private func isOfNamespace(_ context: CommandContext) -> Bool {
    switch naming {
    case .none: true
    case .optional: (hub ?? context.environment["BELFRY_HUB"]) == nil
    case .option: false
    }
  }

  /// Runs a closure as a client of the selected hub, and first prints which one it is: over HTTP
  /// with a connection string, or with the ``DirectoryAccess`` of the command for a data directory.
  ///
  /// Refusals of the hub become failures with its own reason.
  func withHub<Value>(
    _ use: HubLocation.Use = .looks, in context: CommandContext,
    _ work: (HubAccess) async throws -> Value
  ) async throws -> Value {
    let target = try target(use, in: context)
    if case .directory(let directory) = target.location,
      directoryAccess == .inProcess || directoryAccess == .either && !directory.isServed
    {
      return try await location.withStore(use, in: context) { runtime in
        let access = runtime.client(
          of: isOfNamespace(context) ? "" : try await location.hubName(runtime, in: context),
          in: context)
        return try await access.calling { try await work(access) }
      }
    }
    let access = try await access(use, in: context)
    return try await access.calling { try await work(access) }
  }

  private func target(_ use: HubLocation.Use, in context: CommandContext) throws -> HubTarget {
    let target = try location.target(use, namesHub: naming != .none, in: context)
    if case .directory = target.location, ca != nil {
      throw UsageError("--ca goes with a connection string; \(target.origin) needs none")
    }
    return target
  }

  /// Access over HTTP, also to the server of a data directory, which must be running.
  func access(_ use: HubLocation.Use = .looks, in context: CommandContext) async throws -> HubAccess
  {
    let target = try target(use, in: context)
    if use.isChange { try target.checkIsHere(context.environment) }
    let access: HubAccess
    switch target.location {
    case .directory(let directory): access = try await server(of: directory, in: context)
    case .connection(let connection): access = try self.access(connection, in: context)
    }
    target.announce(
      changes: use.isChange, hub: access.hub.isEmpty ? use.hub : access.hub,
      at: access.connection.endpoint.url, in: context)
    return access
  }

  private func access(
    _ connection: ConnectionString, in context: CommandContext
  ) throws -> HubAccess {
    if let option = settings.parameters.first(where: \.isGiven) {
      throw UsageError(
        "\(option.declaration.name) is for a data directory, not for a connection string")
    }
    if isOfNamespace(context) { return try access(connection, hub: "", in: context) }
    guard let hub = hub ?? context.environment["BELFRY_HUB"] else {
      throw UsageError("--hub is missing: a connection string does not name the hub")
    }
    return try access(connection, hub: hub, in: context)
  }

  /// - Parameter hub: Empty for the whole namespace.
  func access(
    _ connection: ConnectionString, hub: String, in context: CommandContext
  ) throws -> HubAccess {
    guard let authority = ca ?? context.environment["BELFRY_CA"] else {
      return HubAccess(connection: connection, hub: hub)
    }
    return HubAccess(
      connection: connection.overTLS, hub: hub,
      transport: try ClientTransport(trusting: authority), authority: authority)
  }

  private func server(
    of directory: DataDirectory, in context: CommandContext
  ) async throws -> HubAccess {
    _ = try DataDirectory.existing(at: directory.path)
    let endpoint = try directory.requiredEndpoint(
      RunningUp.last(context.environment).map {
        ". The running `belfry up` is --data \($0.data)"
      } ?? "")
    return try await location.open(directory, in: context) { runtime in
      let hub = try await location.hubName(runtime, in: context)
      let policy = try await runtime.service.policies.get(
        named: AccessPolicy.defaultFullName, hub: hub)
      return HubAccess(connection: policy.connectionString(endpoint: endpoint), hub: hub)
    }
  }
}

extension ConnectionString {
  /// The connection string with TLS. A `sb` endpoint with a loopback host and a port is otherwise
  /// read as plain HTTP, and those that `belfry up` prints for its HTTPS port have that form.
  fileprivate var overTLS: ConnectionString {
    guard !endpoint.usesTLS, let scheme = endpoint.url.firstRange(of: "://"),
      let secure = ServiceEndpoint(parsing: "https://" + endpoint.url[scheme.upperBound...])
    else { return self }
    return ConnectionString(endpoint: secure, keyName: keyName, key: key)
  }
}
