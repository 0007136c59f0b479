import HubCore

/// What the commands share that work on a data directory rather than over HTTP.
struct ManagementOptions: Sendable {
  static let options: [Option] = [
    .value(
      "--data", "DIR", "the data directory of the hub (default belfry-data, or BELFRY_DATA)"),
    .value("--config", "FILE", "the configuration file, which may name the data directory"),
    .flag("--json", "print one JSON value for scripts"),
  ]

  static let hub = Option.value(
    "--hub", "NAME", "the hub (may be left out when there is only one)")

  static let note = """
    Works on the data directory, also while a server runs on it: the server notices at once.
    """

  let words: Words
  var json: Bool { words.flag("--json") }

  /// Runs work on the store of the data directory.
  ///
  /// - Parameters:
  ///   - data: The directory; `nil` for that of the configuration.
  ///   - create: Make the directory and the database when they are missing.
  func withHub<Value>(
    data: String? = nil, in context: CommandContext, create: Bool = false,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    let configuration = try Configuration(
      file: words.value("--config"), environment: context.environment, words: words)
    let path = data ?? configuration.text(.data) ?? "belfry-data"
    if !create { _ = try DataDirectory.existing(at: path) }
    let runtime = try await HubRuntime.open(
      try HubRuntime.Options(configuration, data: path, write: context.note))
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
  func hubName(_ runtime: HubRuntime) async throws -> String {
    if let name = words.value("--hub") {
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
