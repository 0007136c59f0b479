import HubCore

/// What the commands share that work on a data directory rather than over HTTP.
struct ManagementOptions: Sendable {
  static let options: [Option] = [
    .value("--data", "DIR", "the data directory of the hub (or BELFRY_DATA)"),
    .value("--config", "FILE", "a configuration file, which names the data directory"),
    .flag("--json", "print one JSON value for scripts"),
  ]

  static let hub = Option.value(
    "--hub", "NAME", "the hub (or BELFRY_HUB; not needed where there is only one)")

  static let note = """
    Works on the data directory, also while a server runs on it: the server notices at once.
    \(HubTarget.note)
    """

  /// What a command does to the hubs of the data directory.
  enum Use: Sendable {
    case looks
    /// Changes the hub that `--hub` names.
    case changes
    /// Changes this hub.
    case changesHub(String)
    /// Makes a hub, and the directory when it is missing.
    case creates(String)
  }

  let words: Words
  var json: Bool { words.flag("--json") }

  /// Runs work on the store of the data directory that is meant, and says first which it is.
  func withHub<Value>(
    _ use: Use = .looks, in context: CommandContext, _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    let target = try target(use, in: context)
    guard case .directory(let directory) = target.place else {
      throw words.fault(
        "\(target.origin) names a hub over HTTP, and this works on a data directory. Say --data DIR"
      )
    }
    if case .creates = use {
    } else {
      _ = try DataDirectory.existing(at: directory.path)
    }
    if case .looks = use {
    } else {
      try target.checkIsHere(words, environment: context.environment)
    }
    return try await open(directory, in: context) { runtime in
      let isOfNamespace = words.flag("--namespace-policy")
      switch use {
      case .looks: target.announce(changes: false, hub: nil, in: context)
      case .changes:
        let hub = isOfNamespace ? nil : try await hubName(runtime, in: context)
        target.announce(changes: true, hub: hub, in: context)
      case .changesHub(let hub), .creates(let hub):
        target.announce(changes: true, hub: hub, in: context)
      }
      return try await work(runtime)
    }
  }

  private func target(_ use: Use, in context: CommandContext) throws -> HubTarget {
    let target = try HubTarget.find(words, environment: context.environment)
    guard case .creates = use else {
      if let target { return target }
      throw words.fault(
        "which hub? There is no ./\(HubTarget.standardData) and no `belfry up` runs. Name a data "
          + "directory with --data DIR, or make a hub with `belfry hub create NAME`")
    }
    // What a `belfry up` has goes with it: nobody wants a new hub there without saying so.
    if let target, target.origin != .up { return target }
    return HubTarget(
      place: .directory(try DataDirectory.make(at: HubTarget.standardData)), origin: .here)
  }

  /// Opens the store of a directory without serving.
  func open<Value>(
    _ directory: DataDirectory, in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    let configuration = try Configuration(
      file: words.value("--config"), environment: context.environment, words: words)
    let runtime = try await HubRuntime.open(
      try HubRuntime.Options(configuration, data: directory.path, write: context.note))
    do {
      let value = try await work(runtime)
      await runtime.stop(within: .zero)
      return value
    } catch {
      await runtime.stop(within: .zero)
      throw error
    }
  }

  /// The hub that `--hub` names, or the only one there is.
  func hubName(_ runtime: HubRuntime, in context: CommandContext) async throws -> String {
    if let name = words.value("--hub") ?? context.environment["BELFRY_HUB"] {
      return try await runtime.hub(named: name).name
    }
    let all = try await runtime.service.hubs()
    if all.count == 1 { return all[0].name }
    throw words.fault(
      all.isEmpty
        ? "there is no hub yet; make one with `belfry hub create NAME`"
        : "--hub is missing; there are " + all.map(\.name).joined(separator: ", "))
  }
}

extension HubRuntime {
  /// A hub by its name.
  /// - Throws: ``CommandFailure`` that lists those there are.
  func hub(named name: String) async throws -> Hub {
    if let hub = try await service.store.hub(named: name) { return hub }
    let known = try await service.hubs().map(\.name).joined(separator: ", ")
    throw CommandFailure(
      "there is no hub named '\(name)'"
        + (known.isEmpty ? "; make one with `belfry hub create \(name)`" : "; there are: \(known)"))
  }
}
