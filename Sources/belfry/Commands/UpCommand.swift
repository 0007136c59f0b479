import Foundation
import HubCore
import NotificationHubs

/// `belfry up`
struct UpCommand: Subcommand {
  static let help = CommandHelp(
    "up", "run hub and push services for development and tests",
    options: [
      .value(
        "--data", "DIR",
        "keep hub, keys and virtual phones here for the next run (default: nothing is kept)"),
      .value("--port", "N", "the hub's port (default 8080); 0 picks free ports for everything"),
      .value("--https-port", "N", "the hub's port for HTTPS (default 8443; free with --port 0)"),
      .value("--backend-port", "N", "the app backend's port (default 8090; free with --port 0)"),
      .value("--hub", "NAME", "the hub's name (default demo)"),
      .value("--topic", "ID", "the bundle id of the app (default \(StandIns.standardTopic))"),
      .value(
        "--emulator", "URL",
        "use the emulator with this control address, started by `belfry emulator`"),
      Setting.compatibility.option, Setting.logFormat.option, Setting.logLevel.option,
      .flag("--json", "print addresses and keys as one line of JSON when everything is up"),
    ],
    discussion: """
      Starts a hub and the push services' stand-ins, prints where they are and how to get in, and
      serves until SIGTERM or Ctrl-C. Several can run side by side with --port 0.

      The hub speaks HTTP and, for clients that insist on it, HTTPS with a certificate for localhost
      of the authority printed as CA.
      """,
    examples: [
      "belfry up", "belfry up --json --port 0 --data ./dev",
      "belfry up --emulator http://127.0.0.1:9400",
    ])

  let options: DevelopmentStack.Options
  let json: Bool
  let logFormat: LogFormat
  let logLevel: LogLevel

  init(_ words: Words) throws {
    var options = DevelopmentStack.Options()
    options.data = words.value("--data")
    options.port = try words.integer("--port", in: 0...65535) ?? options.port
    options.httpsPort = try words.integer("--https-port", in: 0...65535) ?? options.httpsPort
    options.backendPort =
      try words.integer("--backend-port", in: 0...65535) ?? options.backendPort
    options.hub = words.value("--hub") ?? options.hub
    options.topic = words.value("--topic") ?? options.topic
    options.emulator = words.value("--emulator")
    if let word = words.value(Setting.compatibility.flag) {
      guard let compatibility = Compatibility(rawValue: word) else {
        throw words.fault("--compatibility wants strict or extended, not '\(word)'")
      }
      options.compatibility = compatibility
    }
    guard HubDescription.isName(options.hub) else {
      throw words.fault(
        "--hub: '\(options.hub)' is no name of a hub: it begins with a letter and holds letters, "
          + "digits and -._")
    }
    try StandIns.check(topic: options.topic, in: words)
    self.options = options
    logFormat = try Self.word(Setting.logFormat, of: words, LogFormat.allCases) ?? .text
    logLevel = try Self.word(Setting.logLevel, of: words, LogLevel.allCases) ?? .info
    json = words.flag("--json")
  }

  private static func word<Word: RawRepresentable<String>>(
    _ setting: Setting, of words: Words, _ all: [Word]
  ) throws -> Word? {
    guard let text = words.value(setting.flag) else { return nil }
    guard let word = Word(rawValue: text) else {
      let known = all.map(\.rawValue).joined(separator: " or ")
      throw words.fault("\(setting.flag) wants \(known), not '\(text)'")
    }
    return word
  }

  func run(in context: CommandContext) async throws {
    let signal = ShutdownSignal()
    var options = options
    options.masterKey = context.environment[Setting.masterKey.variable]
    options.log = context.log
    options.hubLog = HubLog(level: logLevel, format: logFormat, write: context.note)
    let stack: DevelopmentStack
    do {
      stack = try await DevelopmentStack.start(options)
    } catch let failure as CommandFailure
      where failure.description.contains("another program uses it") && options.port != 0
    {
      throw CommandFailure(
        "\(failure.description). `belfry up --port 0` takes free ports for everything",
        exitCode: failure.exitCode)
    }
    let addresses = stack.addresses
    let note = RunningUp(
      data: addresses.data, hub: addresses.hub.url, control: addresses.emulator.control,
      backend: addresses.backend.url
    ).publish(context.environment)
    if json {
      try context.printJSON(addresses)
    } else {
      for line in Self.lines(addresses, keepsData: options.data != nil) { context.print(line) }
    }
    _ = await signal.wait()
    try? FileManager.default.removeItem(at: note)
    await stack.stop(within: .seconds(10))
  }

  private static func lines(_ addresses: DevelopmentStack.Addresses, keepsData: Bool) -> [String] {
    let hub = addresses.hub
    let channels = addresses.emulator.apnsChannels.map {
      ["channels   \($0)  (of APNs: broadcasts to Live Activities)"]
    }
    return [
      "Belfry is up. Ctrl-C ends it" + (keepsData ? "." : "; nothing is kept without --data."),
      "",
      "hub        \(hub.url)  (\(hub.name))",
      "HTTPS      \(hub.httpsUrl)",
      "APNs       \(addresses.emulator.apns)  (topic \(addresses.emulator.topic))",
    ] + (channels ?? [])
      + addresses.emulator.services.sorted { $0.key < $1.key }.map { name, url in
        name.padded(to: 11) + url
      } + [
        "emulator   \(addresses.emulator.control)",
        "browser    \(addresses.browserPage)  (open it to see a web push)",
        "backend    \(addresses.backend.url)  (sign in with any name, which is its password)",
        "CA         \(hub.ca)",
        "data       \(addresses.data)",
        "",
        "In another terminal:",
        "  belfry phone --tags 12345",
        "  belfry send --template message='Hello!' --tags 12345 --wait",
        "",
        "For your own code, a backend's connection string (everything):",
        "  \(hub.connectionStrings.full)",
        "A device's connection string (Listen only):",
        "  \(hub.connectionStrings.listen)",
        "For one of Azure's clients, which has to trust the CA:",
        "  \(hub.httpsConnectionStrings.full)",
      ]
  }
}
