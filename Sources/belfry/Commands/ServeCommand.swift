import Foundation
import HubCore

/// `belfry serve`
struct ServeCommand: Subcommand {
  static let help = CommandHelp(
    "serve", "run the hub: the production server",
    options: [
      .value(
        "--config", "FILE", "the configuration file (default: belfry.json here, if it is there)")
    ] + Setting.all.map(\.option) + [
      .flag("--json", "print where it serves as one line of JSON when it is ready")
    ],
    discussion: """
      Serves until SIGTERM or Ctrl-C, then stops accepting, finishes what is in flight and exits
      with 0. What was accepted survives a crash and is taken up by the next start.

      HTTPS is served beside HTTP once it has a certificate: files of yours (a new one is taken up
      while the server runs, when its files change), or --tls-self-signed.

      Hubs come from the configuration file, or from `belfry hub create` (also while it runs).
      """,
    examples: [
      "belfry serve --data /var/lib/belfry",
      "belfry serve --config /etc/belfry.json --address 0.0.0.0",
      "belfry serve --tls-port 443 --tls-certificate fullchain.pem --tls-key privkey.pem",
      "belfry serve --tls-self-signed --public-names hub.example.com",
    ])

  let words: Words
  init(_ words: Words) { self.words = words }

  private struct Ready: Encodable {
    let url: String
    let httpsUrl: String?
    let otherUrls: [String]
    let metricsUrl: String?
    let data: String
    let hubs: [String]
  }

  func run(in context: CommandContext) async throws {
    let configuration = try Configuration(
      file: words.value("--config"), environment: context.environment, words: words)
    let options = try HubRuntime.Options(configuration, write: context.note)
    let log = options.log.lines(.info, "server")
    let signal = ShutdownSignal()
    let runtime = try await HubRuntime.start(options)
    do {
      try await runtime.apply(configuration.hubs, log: options.log)
    } catch let failure as HubFailure where failure.status == 503 {
      // The disk is full, or the database locked: what is there is served as it is.
      options.log(
        .error, "configuration.unwritten",
        "the hubs of the configuration are not brought up to it: \(failure)")
    } catch {
      await runtime.stop(within: .zero)
      throw error
    }
    let hubs = try await runtime.service.hubs()
    let urls = [runtime.url, runtime.httpsURL].compactMap(\.self).joined(separator: " and ")
    log("belfry \(BelfryVersion.current) serves \(urls) from \(runtime.data.path)")
    for url in runtime.otherURLs { log("also reached at \(url)") }
    if runtime.httpsURL == nil, !["127.0.0.1", "::1", "localhost"].contains(options.address) {
      options.log(
        .warning, "server",
        "keys, tokens and payloads travel in the clear: give --tls-certificate and --tls-key (or "
          + "--tls-self-signed), or put a proxy that speaks TLS in front")
    }
    if let url = runtime.metricsURL { log("metrics at \(url)") }
    if hubs.isEmpty {
      log("there is no hub yet: belfry hub create NAME --data \(runtime.data.path)")
    } else {
      log("hubs: " + hubs.map(\.name).joined(separator: ", "))
    }
    if words.flag("--json") {
      try context.printJSON(
        Ready(
          url: runtime.url ?? "", httpsUrl: runtime.httpsURL,
          otherUrls: runtime.otherURLs, metricsUrl: runtime.metricsURL, data: runtime.data.path,
          hubs: hubs.map(\.name)))
    }
    _ = await signal.wait()
    log("stopping; press Ctrl-C again to end at once")
    await runtime.stop(within: .seconds(configuration.integer(.shutdownTimeout)))
    log("stopped")
  }
}

extension CommandContext {
  /// A line for the operator, with the time in front, to standard error.
  var log: @Sendable (String) -> Void {
    { [note] line in note(Date().formatted(.iso8601) + " " + line) }
  }
}
