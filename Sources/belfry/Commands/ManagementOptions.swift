/// The common options of commands that open the store of a data directory, because the API has no
/// call for what they do.
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

  var location: HubLocation {
    HubLocation(data: data, config: config, hub: hub, settings: settings.given)
  }

  func withStore<Value>(
    _ use: HubLocation.Use = .looks, as change: HubLocation.Change? = nil,
    in context: CommandContext,
    _ work: (HubRuntime) async throws -> Value
  ) async throws -> Value {
    try await location.withStore(use, as: change, in: context, work)
  }
}
