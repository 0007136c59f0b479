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
  private let hasJSON: Bool
  private let namesHub: Bool
  private let needsServer: Bool
  private let settings: SettingOptions

  var parameters: [any Parameter] {
    (namesHub ? [_hub] : []) + [_connection, _ca, _data, _config] + (hasJSON ? [_json] : [])
      + settings.parameters
  }

  /// - Parameters:
  ///   - right: The right for a command that only Belfry supports; `nil` if Azure supports it too.
  ///   - hasJSON: Whether `--json` is included.
  ///   - namesHub: Whether `--hub` is included; otherwise an argument names the hub, or the command
  ///     applies to all.
  ///   - needsServer: Whether the server of a data directory must run, because it delivers.
  ///   - settings: The settings of the server that the command accepts for a data directory.
  init(
    belfryOnly right: String? = nil, hasJSON: Bool = true, namesHub: Bool = true,
    needsServer: Bool = false, settings: [Setting] = []
  ) {
    _data = Option(
      "--data", "DIR",
      "the data directory of \(needsServer ? "a server that runs" : "the hub") (or BELFRY_DATA)")
    self.hasJSON = hasJSON
    self.needsServer = needsServer
    self.namesHub = namesHub
    self.settings = SettingOptions(settings)
    note =
      (right.map { "Belfry only; needs the \($0) right. " }
        ?? "The hub may be Belfry's or Azure's. ")
      + (needsServer ? "" : "A data directory needs no running server. ") + HubTarget.note
  }

  var place: HubPlace {
    HubPlace(
      connection: connection, data: data, config: config, hub: hub, settings: settings.given)
  }

  /// The kind of access of a command, and the right that it needs.
  struct Use: Sendable {
    /// The access to the hubs of a data directory.
    let place: HubPlace.Use
    let right: String
    /// Whether it is the namespace's, with hubs as its objects.
    var isOfNamespace = false
    /// Whether a data directory is opened also beside a running server.
    var staysInProcess = false

    static func looks(_ right: String) -> Use { Use(place: .looks, right: right) }
    static func changes(_ right: String) -> Use { Use(place: .changes, right: right) }
    /// Looks at a hub's management, which includes what a server keeps to itself.
    static let inspects = Use(place: .looks, right: "Manage", staysInProcess: true)
    /// Looks at or changes hubs themselves.
    static func manages(_ place: HubPlace.Use = .looks) -> Use {
      Use(place: place, right: "Manage", isOfNamespace: true, staysInProcess: true)
    }
  }

  /// Runs a closure as a client of the selected hub, and first prints which one it is: over HTTP
  /// with a connection string, in process for a data directory. There a running server is asked over
  /// HTTP, unless the use stays in process.
  ///
  /// Refusals of the hub become failures with its own reason.
  func withHub<Value>(
    _ use: Use, in context: CommandContext, _ work: (HubAccess) async throws -> Value
  ) async throws -> Value {
    if case .directory(let directory) = try place.target(
      use.place, takesConnection: namesHub, in: context
    ).place,
      use.staysInProcess || !needsServer && !directory.isServed
    {
      try refuseAuthority(in: context)
      return try await place.withStore(use.place, in: context) { runtime in
        let hub = use.isOfNamespace ? "" : try await place.hubName(runtime, in: context)
        let access = runtime.client(of: hub, in: context)
        return try await access.calling { try await work(access) }
      }
    }
    let access = try await access(use, in: context)
    return try await access.calling { try await work(access) }
  }

  /// Access over HTTP, also to the server of a data directory, which must be running.
  func access(_ use: Use, in context: CommandContext) async throws -> HubAccess {
    let target = try place.target(use.place, takesConnection: namesHub, in: context)
    let changes = use.place.isChange
    if changes { try target.checkIsHere(context.environment) }
    let access: HubAccess
    switch target.place {
    case .directory(let directory):
      try refuseAuthority(in: context)
      access = try await self.access(directory, use, in: context)
    case .connection(let connection):
      access = try self.access(connection, use, in: context)
    }
    target.announce(
      changes: changes, hub: use.isOfNamespace ? use.place.hub : access.hub,
      at: access.connection.endpoint.url, in: context)
    return access
  }

  private func refuseAuthority(in context: CommandContext) throws {
    guard ca == nil else {
      throw UsageError(
        "--ca goes with a connection string; \(try place.target(in: context).origin) needs none")
    }
  }

  private func access(
    _ connection: ConnectionString, _ use: Use, in context: CommandContext
  ) throws -> HubAccess {
    if let option = settings.parameters.first(where: \.isGiven) {
      throw UsageError(
        "\(option.declaration.name) is for a data directory, not for a connection string")
    }
    if use.isOfNamespace { return try namespaceAccess(connection, in: context) }
    guard let hub = hub ?? context.environment["BELFRY_HUB"] else {
      throw UsageError("--hub is missing: a connection string does not name the hub")
    }
    return try access(connection, hub: hub, use.right, in: context)
  }

  /// Access to the whole namespace over HTTP.
  func namespaceAccess(
    _ connection: ConnectionString, in context: CommandContext
  ) throws -> HubAccess {
    try access(connection, hub: "", "Manage", in: context)
  }

  private func access(
    _ connection: ConnectionString, hub: String, _ right: String, in context: CommandContext
  ) throws -> HubAccess {
    guard let authority = ca ?? context.environment["BELFRY_CA"] else {
      return HubAccess(connection: connection, hub: hub, right: right)
    }
    return HubAccess(
      connection: connection.overTLS, hub: hub, right: right,
      transport: try ClientTransport(trusting: authority), authority: authority)
  }

  private func access(
    _ directory: DataDirectory, _ use: Use, in context: CommandContext
  ) async throws -> HubAccess {
    _ = try DataDirectory.existing(at: directory.path)
    guard let endpoint = directory.servedEndpoint else {
      let other = RunningUp.last(context.environment).map {
        ". The running `belfry up` is --data \($0.data)"
      }
      throw CommandFailure(
        "no server runs on \(directory.path) at the moment; start `belfry serve --data "
          + "\(directory.path)` or `belfry up --data \(directory.path)`" + (other ?? ""),
        exitCode: .unreachable)
    }
    return try await place.open(directory, in: context) { runtime in
      let hub = try await place.hubName(runtime, in: context)
      let policy = try await runtime.service.policy(
        named: AccessPolicy.defaultFullName, hub: hub)
      return HubAccess(
        connection: policy.connectionString(endpoint: endpoint), hub: hub, right: use.right)
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
