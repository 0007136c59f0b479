import Foundation
import HubCore
import HubServer
import NotificationHubs

/// The location of a hub as given to a command.
struct HubLocation: Sendable {
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

    var isChange: Bool { if case .looks = self { false } else { true } }

    /// The hub that the use names.
    var hub: String? {
      switch self {
      case .changesHub(let hub), .creates(let hub): hub
      case .looks, .changes, .changesNamespace: nil
      }
    }
  }

  /// The entry of a command's change in the activity log.
  typealias Change = (action: ActivityAction, object: String?)

  /// Runs a closure on the store of the selected data directory, and first prints which one it is.
  func withStore<Value>(
    _ use: Use = .looks, as change: Change? = nil, in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    let (target, directory) = try local(use, in: context)
    let creates = if case .creates = use { true } else { false }
    if try !creates && configuration(context.environment).text(.database) == nil {
      _ = try DataDirectory.existing(at: directory.path)
    }
    if use.isChange { try target.checkIsHere(context.environment) }
    return try await open(directory, mayMake: creates, in: context) { runtime in
      let hub = if case .changes = use { try await hubName(runtime, in: context) } else { use.hub }
      if use.isChange { try await directory.refuseMoved(runtime.shared) }
      target.announce(changes: use.isChange, hub: hub, in: context)
      guard let change else { return try await work(runtime) }
      return try await runtime.noting(change, hub: hub, in: context, work)
    }
  }

  /// The selected data directory, for a command that does not use HTTP. It may not exist yet.
  func local(
    _ use: Use = .looks, in context: CommandContext
  ) throws -> (target: HubTarget, directory: DataDirectory) {
    let target = try target(use, takesConnection: false, in: context)
    guard case .directory(let directory) = target.location else {
      throw UsageError(
        "\(target.origin) names a hub over HTTP, but this command works on a data directory. Pass "
          + "--data DIR"
      )
    }
    return (target, directory)
  }

  /// - Parameters:
  ///   - takesConnection: Whether the command also works over HTTP.
  ///   - namesHub: Whether it has the option `--hub`.
  /// - Throws: `UsageError` if nothing names a hub, and the use creates none.
  func target(
    _ use: Use = .looks, takesConnection: Bool = true, namesHub: Bool = true,
    in context: CommandContext
  ) throws -> HubTarget {
    let target = try HubTarget.find(self, environment: context.environment)
    guard case .creates = use else {
      if let target { return target }
      throw UsageError(
        "which hub? There is no ./\(HubTarget.standardData) and no `belfry up` runs. "
          + (takesConnection
            ? "Give --connection STRING\(namesHub ? " and --hub NAME" : ""), or --data DIR on the machine "
              + "where Belfry runs"
            : "Name a data directory with --data DIR, or make a hub with `belfry hub create NAME`"))
    }
    // The directory of a `belfry up` is deleted with it, so a hub is created there only on request.
    if let target, target.origin != .up { return target }
    let path = URL(fileURLWithPath: HubTarget.standardData).standardizedFileURL.path
    return HubTarget(location: .directory(DataDirectory(path: path)), origin: .here)
  }
}

extension HubRuntime {
  /// Runs a closure, and writes its result to the activity log.
  fileprivate func noting<Value>(
    _ change: HubLocation.Change, hub name: String?, in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    let owner = HubOwner(in: context)
    var hub: Hub?
    if let name { hub = try await service.store.hub(named: name) }
    let note = ActivityNote(
      change.action, of: change.object, hub: hub?.id ?? 0, named: hub?.name ?? name,
      by: owner.caller, from: "", at: service.clock.now())
    func keep(_ status: Int) async {
      do throws(HubFailure) { try await service.keep(note, status: status) } catch {
        owner.unlogged(error)
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

extension HubOwner {
  /// The user who runs a command.
  init(in context: CommandContext) {
    self.init(commandLine: NSUserName()) { [note = context.note] failure in
      note("the activity log does not tell of this: \(failure.message ?? "the store refused")")
    }
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
