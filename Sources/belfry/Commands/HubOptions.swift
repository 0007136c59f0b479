import Foundation
import HTTPClient
import HubCore
import NotificationHubs

/// The location of a hub as given to a command.
struct HubPlace: Sendable {
  var connection: String?
  var data: String?
  var config: String?
  var hub: String?
  /// Settings that were given as options, by key.
  var settings: [String: String] = [:]

  /// The options that named the hub, for suggesting a next command. A connection string contains a
  /// key and is not repeated.
  var options: String {
    let known = [("--data", data), ("--config", config), ("--hub", hub)].compactMap { name, value in
      value.map { " \(name) \(CurlCommand.word($0))" }
    }
    return (connection == nil ? "" : " --connection …") + known.joined()
  }

  func configuration(_ environment: [String: String]) throws(ConfigurationError) -> Configuration {
    var flags = settings
    flags[Setting.data.key] = data
    return try Configuration(file: config, environment: environment, flags: flags)
  }

  /// Returns the target; throws if there is none.
  func target(in context: CommandContext) throws -> HubTarget {
    if let target = try HubTarget.find(self, environment: context.environment) { return target }
    throw UsageError(
      "which hub? There is no ./\(HubTarget.standardData) and no `belfry up` runs. Give --connection "
        + "STRING and --hub NAME, or --data DIR on the machine where Belfry runs")
  }

  /// Opens the store of a directory without serving.
  /// - Parameter mayMake: Whether directory, key and tables are created if they are missing.
  func open<Value>(
    _ directory: DataDirectory, mayMake: Bool = false, in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    let runtime = try await HubRuntime.open(
      try HubRuntime.Options(
        try configuration(context.environment), data: directory.path, mayMake: mayMake,
        in: context))
    do {
      let value = try await work(runtime)
      await runtime.stop(within: .zero)
      return value
    } catch {
      await runtime.stop(within: .zero)
      throw error
    }
  }

  /// The name of the hub: that of `--hub`, the only one that exists, or that of the `belfry up`
  /// here.
  func hubName(_ runtime: HubRuntime, in context: CommandContext) async throws -> String {
    if let name = hub ?? context.environment["BELFRY_HUB"] {
      return try await runtime.hub(named: name).name
    }
    let all = try await runtime.service.hubs()
    if all.count == 1 { return all[0].name }
    let up = RunningUp.all(context.environment).last { $0.data == runtime.data.path }
    if let own = up?.hubName, all.contains(where: { $0.name == own }) { return own }
    throw UsageError(
      all.isEmpty
        ? "there is no hub yet; make one with `belfry hub create NAME`"
        : "--hub is missing; there are " + all.map(\.name).joined(separator: ", "))
  }

  /// The access of a command to the hubs of a data directory.
  enum Use: Sendable {
    case looks
    /// Changes the hub given by `--hub`.
    case changes
    case changesNamespace
    /// Changes this hub.
    case changesHub(String)
    /// Creates a hub, and the directory if it is missing.
    case creates(String)
  }

  /// The entry of a command's change in the activity log.
  struct Change: Sendable {
    /// The action, named as in the API: `createHub`.
    let action: String
    var object: String?

    init(_ action: String, _ object: String? = nil) {
      self.action = action
      self.object = object
    }
  }

  /// Runs a closure on the store of the selected data directory, and first prints which one it is.
  func withHub<Value>(
    _ use: Use = .looks, as change: Change? = nil, in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    let (target, directory) = try local(use, in: context)
    let creates = if case .creates = use { true } else { false }
    if try !creates && configuration(context.environment).text(.database) == nil {
      _ = try DataDirectory.existing(at: directory.path)
    }
    if case .looks = use {} else { try target.checkIsHere(context.environment) }
    return try await open(directory, mayMake: creates, in: context) { runtime in
      let hub: String? =
        switch use {
        case .looks, .changesNamespace: nil
        case .changes: try await hubName(runtime, in: context)
        case .changesHub(let hub), .creates(let hub): hub
        }
      let changes = if case .looks = use { false } else { true }
      if changes { try await directory.refuseMoved(runtime.shared) }
      target.announce(changes: changes, hub: hub, in: context)
      guard let change else { return try await work(runtime) }
      return try await runtime.noting(change, hub: hub, in: context, work)
    }
  }

  /// The selected data directory, for a command that does not use HTTP. It may not exist yet.
  func local(
    _ use: Use = .looks, in context: CommandContext
  ) throws -> (target: HubTarget, directory: DataDirectory) {
    let target = try target(use, in: context)
    guard case .directory(let directory) = target.place else {
      throw UsageError(
        "\(target.origin) names a hub over HTTP, but this command works on a data directory. Pass "
          + "--data DIR"
      )
    }
    return (target, directory)
  }

  private func target(_ use: Use, in context: CommandContext) throws -> HubTarget {
    let target = try HubTarget.find(self, environment: context.environment)
    guard case .creates = use else {
      if let target { return target }
      throw UsageError(
        "which hub? There is no ./\(HubTarget.standardData) and no `belfry up` runs. Name a data "
          + "directory with --data DIR, or make a hub with `belfry hub create NAME`")
    }
    // The directory of a `belfry up` is deleted with it, so a hub is created there only on request.
    if let target, target.origin != .up { return target }
    let path = URL(fileURLWithPath: HubTarget.standardData).standardizedFileURL.path
    return HubTarget(place: .directory(DataDirectory(path: path)), origin: .here)
  }
}

extension HubRuntime {
  /// Runs a closure, and writes its result to the activity log.
  fileprivate func noting<Value>(
    _ change: HubPlace.Change, hub name: String?, in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    var hub: Hub?
    if let name { hub = try await service.store.hub(named: name) }
    let note = ActivityNote(
      change.action, of: change.object, hub: hub?.id ?? 0, named: hub?.name ?? name,
      by: Caller(name: "command-line/\(NSUserName())", via: .commandLine, rights: .all), from: "",
      at: service.clock.now())
    func keep(_ status: Int) async {
      do { try await service.keep(note, status: status) } catch {
        context.note(
          "the activity log does not tell of this: \(error.message ?? "the store refused")")
      }
    }
    do {
      let value = try await work(self)
      await keep(200)
      return value
    } catch let failure as HubFailure {
      await keep(failure.status)
      throw failure
    }
  }

  /// Returns the hub with a name.
  /// - Throws: ``CommandFailure`` that lists the existing hubs.
  func hub(named name: String) async throws -> Hub {
    if let hub = try await service.store.hub(named: name) { return hub }
    throw CommandFailure(unknownHub: name, of: try await service.hubs().map(\.name))
  }
}

extension CommandFailure {
  /// - Parameter known: The names of the existing hubs.
  init(unknownHub name: String, of known: [String]) {
    self.init(
      "there is no hub named '\(name)'; "
        + (known.isEmpty
          ? "make one with `belfry hub create \(CurlCommand.word(name))`"
          : "there are: \(known.joined(separator: ", "))"))
  }
}

/// The common options of commands that use a data directory rather than HTTP.
struct ManagementOptions: ParameterGroup {
  @Option("--data", "DIR", "the data directory of the hub (or BELFRY_DATA)") var data: String?
  @Option("--config", "FILE", "a configuration file, which names the data directory")
  var config: String?
  @Flag("--json", "print one JSON value for scripts") var json
  @Option("--hub", "NAME", "the hub (or BELFRY_HUB; not needed where there is only one)")
  var hub: String?
  private let namesHub: Bool
  private let settings: SettingOptions

  /// - Parameters:
  ///   - namesHub: Whether `--hub` is included; otherwise an argument names the hub, or the command
  ///     applies to all.
  ///   - settings: The settings of the server that the command accepts.
  init(namesHub: Bool = true, settings: [Setting] = []) {
    self.namesHub = namesHub
    self.settings = SettingOptions(settings)
  }

  var parameters: [any Parameter] {
    [_data, _config, _json] + (namesHub ? [_hub] : []) + settings.parameters
  }

  let note =
    "Works on the data directory, also while a server runs on it: the server notices at once. "
    + HubTarget.note

  var place: HubPlace {
    HubPlace(data: data, config: config, hub: hub, settings: settings.given)
  }

  func withHub<Value>(
    _ use: HubPlace.Use = .looks, as change: HubPlace.Change? = nil, in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    try await place.withHub(use, as: change, in: context, work)
  }
}

/// The common options of commands that use a hub over HTTP: its location and its key.
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
  @Option("--data", "DIR", "the data directory of a server that runs (or BELFRY_DATA)")
  var data: String?
  @Option("--config", "FILE", "a configuration file, which names the data directory")
  var config: String?
  @Flag("--json", "print one JSON value for scripts") var json

  let note: String
  private let hasJSON: Bool

  var parameters: [any Parameter] {
    [_hub, _connection, _ca, _data, _config] + (hasJSON ? [_json] : [])
  }

  /// - Parameters:
  ///   - right: The right for a command that only Belfry supports; `nil` if Azure supports it too.
  ///   - hasJSON: Whether `--json` is included.
  init(belfryOnly right: String? = nil, hasJSON: Bool = true) {
    self.hasJSON = hasJSON
    note =
      (right.map { "Belfry only; needs the \($0) right. " }
        ?? "The hub may be Belfry's or Azure's. ") + HubTarget.note
  }

  var place: HubPlace { HubPlace(connection: connection, data: data, config: config, hub: hub) }

  /// The kind of access of a command, and the right that it needs.
  struct Use: Sendable {
    let changes: Bool
    let right: String
    static func looks(_ right: String) -> Use { Use(changes: false, right: right) }
    static func changes(_ right: String) -> Use { Use(changes: true, right: right) }
  }

  func access(_ use: Use, in context: CommandContext) async throws -> HubAccess {
    let target = try place.target(in: context)
    if use.changes { try target.checkIsHere(context.environment) }
    let access: HubAccess
    switch target.place {
    case .directory(let directory):
      guard ca == nil else {
        throw UsageError("--ca goes with a connection string; \(target.origin) needs none")
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
  ) throws -> HubAccess {
    guard let hub = hub ?? context.environment["BELFRY_HUB"] else {
      throw UsageError("--hub is missing: a connection string does not name the hub")
    }
    return try access(connection, hub: hub, use, in: context)
  }

  /// Access to the whole namespace over HTTP.
  func namespaceAccess(
    _ connection: ConnectionString, in context: CommandContext
  ) throws -> HubAccess {
    try access(connection, hub: "", .looks("Manage"), in: context)
  }

  private func access(
    _ connection: ConnectionString, hub: String, _ use: Use, in context: CommandContext
  ) throws -> HubAccess {
    guard let authority = ca ?? context.environment["BELFRY_CA"] else {
      return HubAccess(connection: connection, hub: hub, right: use.right)
    }
    return HubAccess(
      connection: connection.overTLS, hub: hub, right: use.right,
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

/// The location of a hub, and the credentials for it.
struct HubAccess: Sendable {
  let connection: ConnectionString
  let hub: String
  let right: String
  var transport: any HTTPTransport = ClientTransport.shared
  /// The file with the authority to trust in addition to the system's.
  var authority: String?

  var client: NotificationHubClient {
    NotificationHubClient(connectionString: connection, hub: hub, transport: transport)
  }

  /// Calls the hub; its refusals become failures with the hub's own reason.
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
      "`belfry up` prints it as CA, `belfry serve --tls-self-signed` has it as tls-ca.pem in its data "
      + "directory"
    switch (error.underlying as? HTTPFailure)?.kind {
    case .tls where authority == nil:
      return
        ". If its certificate is of an authority of your own, name that with --ca FILE; \(file)"
    case .tls:
      return ". The certificate is not of the authority in \(authority ?? ""), or for another host"
    case .reset where !connection.endpoint.usesTLS:
      return ". It was asked in plain HTTP; if this is its HTTPS port, give --ca FILE: \(file)"
    default: break
    }
    // Belfry itself explains it, in ``WireName/reason``.
    guard error.kind == .unauthorized, error.status == 401 || error.detail == nil else { return "" }
    return error.status == 403
      ? ". The policy \(connection.keyName) lacks the right \(right), which this takes"
      : ". Compare the key with that of `belfry policy show \(connection.keyName)`, and whether "
        + "the hub is called \(hub)"
  }
}
