import Foundation
import HubCore
import HubServer
import NotificationHubs
import Wire

/// The source of a server's configuration.
private struct ServerOptions: ParameterGroup {
  @Option("--config", "FILE", "the configuration file (default: belfry.json here, if it is there)")
  var file: String?
  let settings = SettingOptions(Setting.all)

  func configuration(_ context: CommandContext) throws(ConfigurationError) -> Configuration {
    try Configuration(file: file, environment: context.environment, flags: settings.given)
  }
}

struct ServeCommand: Subcommand {
  static let about = CommandHelp(
    "serve", "run the hub: the production server",
    discussion: """
      Serves until SIGTERM or Ctrl-C, then stops accepting, finishes requests and pages in flight
      and exits with 0. Accepted work survives a crash and continues with the next start.

      HTTPS is served as well as HTTP once there is a certificate: your files (which are reloaded
      when they change), or --tls-self-signed.

      With --database the hub is stored in PostgreSQL, and all servers with the same database are
      nodes of one hub; each has its own data directory with the same master key. `belfry node list`
      shows them; docs/scale.md explains the setup.

      Hubs come from the configuration file, or from `belfry hub create` (also while it runs).

      SIGHUP reads the configuration again and applies hubs, policies, credentials, the files of the
      HTTPS certificate and logLevel; other changes are listed in the log, and take effect at the
      next start. An invalid configuration changes nothing. (A terminal that closes ends the server,
      as SIGTERM does.) Under systemd it notifies when it is ready, reloads and stops, and feeds the
      watchdog: Type=notify, WatchdogSec=.
      """,
    examples: [
      "belfry serve --data /var/lib/belfry",
      "belfry serve --config /etc/belfry.json --address 0.0.0.0",
      "belfry serve --tls-port 443 --tls-certificate fullchain.pem --tls-key privkey.pem",
      "belfry serve --tls-self-signed --public-names hub.example.com",
      "belfry serve --database postgresql://belfry@db1,db2/belfry --data /var/lib/belfry",
    ])
  static let isServer = true

  private let server = ServerOptions()
  @Flag("--json", "print where it serves as one line of JSON when it is ready") var json

  private struct Ready: Encodable {
    let url: String
    let httpsUrl: String?
    let otherUrls: [String]
    let metricsUrl: String?
    let data: String
    let hubs: [String]
  }

  func run(in context: CommandContext) async throws {
    let configuration = try server.configuration(context)
    let options = try HubRuntime.Options(configuration, checksStart: true, in: context)
    let log = options.log.lines(.info, "server")
    let (reloads, wanted) = AsyncStream.makeStream(
      of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let limit = Duration.seconds(configuration.integer(.shutdownTimeout))
    let signal = ShutdownSignal(
      within: limit + .seconds(10), report: options.log.lines(.error, "server.overdue"),
      hangUp: { wanted.yield() })
    let manager = ServiceManager(environment: context.environment)
    // Migrating a large database takes time.
    let starting = manager?.keepTelling(.starting(.seconds(60)), every: .seconds(15))
    defer { starting?.cancel() }
    let runtime = try await HubRuntime.start(options)
    do {
      try await runtime.apply(configuration.hubs, log: options.log)
    } catch let failure as HubFailure where failure.status == 503 {
      // The disk is full or the database locked: the existing hubs are served unchanged.
      options.log(
        .error, "configuration.unwritten",
        "the hubs of the configuration are not brought up to it: \(failure)")
    } catch {
      await runtime.stop(within: .zero)
      throw error
    }
    let hubs = try await runtime.service.hubs()
    let urls = [runtime.url, runtime.httpsURL].compactMap(\.self).joined(separator: " and ")
    let database = try options.data.postgres(options.database).map(DatabaseAddress.shown)
    log(
      "belfry \(BelfryVersion.current) serves \(urls) from "
        + (database.map { "\($0), with \(runtime.data.path)" } ?? runtime.data.path))
    for url in runtime.otherURLs { log("also reached at \(url)") }
    if runtime.httpsURL == nil, !["127.0.0.1", "::1", "localhost"].contains(options.address) {
      options.log(
        .warning, "server",
        "keys, tokens and payloads travel in the clear: give --tls-certificate and --tls-key (or "
          + "--tls-self-signed), or put a proxy that speaks TLS in front")
    }
    if options.portal, let url = runtime.namedURL { log("portal at \(url)\(Portal.path)") }
    if let url = runtime.metricsURL { log("metrics at \(url)") }
    if hubs.isEmpty {
      log("there is no hub yet: belfry hub create NAME --data \(runtime.data.path)")
    } else {
      log("hubs: " + hubs.map(\.name).joined(separator: ", "))
    }
    let ready = Ready(
      url: runtime.url ?? "", httpsUrl: runtime.httpsURL,
      otherUrls: runtime.otherURLs, metricsUrl: runtime.metricsURL, data: runtime.data.path,
      hubs: hubs.map(\.name))
    try CommandResult(ready, []).print(asJSON: json, in: context)
    starting?.cancel()
    manager?.tell(.ready)
    let living = manager?.watch(runtime)
    let reloading = Task { [server] in
      let reload = ConfigurationReload(runtime, startedWith: configuration, log: options.log)
      for await _ in reloads {
        manager?.tell(.reloading)
        await reload.take { try server.configuration(context) }
        manager?.tell(.ready)
      }
    }
    _ = await signal.wait()
    manager?.tell(.stopping)
    reloading.cancel()
    living?.cancel()
    log("stopping; press Ctrl-C again to end at once")
    await runtime.stop(within: limit)
    log("stopped")
  }
}

struct ConfigCommand: ResultCommand {
  static let about = CommandHelp(
    "config", "print the configuration that is in force, secrets hidden",
    discussion: """
      A key in the file, an environment variable and a flag share one name:
      "bodyLimit" in belfry.json, BELFRY_BODY_LIMIT, --body-limit. Flags win over variables,
      variables over the file. belfry.json is JSON in which // comments are allowed. Between the two
      come systemd's LoadCredential= files: the credential belfry.masterKey is that setting.
      """,
    examples: [
      "belfry config", "BELFRY_PORT=9000 belfry config --data /var/lib/belfry",
      "belfry config --example",
    ])

  private let server = ServerOptions()
  @Flag("--example", "print a file with every setting and its default instead") var example
  @Flag("--json", "print one JSON object") var json

  func result(in context: CommandContext) async throws -> CommandResult {
    if example {
      let text = ExampleConfiguration.text
      return CommandResult(written: Array(text.utf8), [text])
    }
    let configuration = try server.configuration(context)
    let entries = Setting.all.map { ($0, configuration.entries[$0.key]) }
    let rows = entries.map { setting, entry in
      let value = entry.map { shown($0) } ?? "-"
      return setting.key.padded(to: 21) + " " + value.padded(to: 32) + " "
        + (entry?.origin.description ?? "not set")
    }
    let hubs = configuration.hubs.map { hub in
      let weight = hub.weight == 1 ? "" : " (weight \(hub.weight))"
      return "hub".padded(to: 21) + " " + hub.name + weight
    }
    return CommandResult(
      written: JSONWriter.object { writer in
        for (setting, entry) in entries { write(setting, entry, to: &writer) }
        writer.array("hubs", configuration.hubs) { $0.string($1.name) }
      }, rows + hubs)
  }

  /// Writes a setting in the form of the file.
  private func write(
    _ setting: Setting, _ entry: Configuration.Entry?, to writer: inout JSONWriter
  ) {
    if let values = entry?.values, case .list = setting.kind, !setting.isSecret {
      return writer.array(setting.key, values) { $0.string($1) }
    }
    writer.name(setting.key)
    switch (entry?.values, setting.kind) {
    case (nil, _): writer.raw("null")
    case (let values?, .integer) where !setting.isSecret: writer.raw(values[0])
    case (let values?, .flag): writer.raw(values[0])
    case (let values?, _): writer.string(setting.shown(values[0]))
    }
  }

  private func shown(_ entry: Configuration.Entry) -> String {
    entry.values.map(entry.setting.shown).joined(separator: ",")
  }
}
