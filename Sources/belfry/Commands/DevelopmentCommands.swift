import Foundation
import HubCore
import HubStorage
import NotificationHubs
import PushEmulator

private let ports = Reader.integer(0...65535)

extension Reader where Value == String {
  /// A valid bundle id.
  fileprivate static let topic = Reader { text, name throws(UsageError) in
    let isTopic = text.utf8.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "._-".utf8.contains(byte)
    }
    guard isTopic, (1...200).contains(text.utf8.count) else {
      throw UsageError("\(name): '\(text)' is not a bundle id; one looks like com.example.app")
    }
    return text
  }
}

extension Reader where Value == ProxyHost {
  fileprivate static let host = Reader { text, name throws(UsageError) in
    guard let host = ProxyHost(text) else {
      throw UsageError("\(name): '\(text)' is neither a host's name nor an address; give no port")
    }
    return host
  }
}

/// The options for tests of senders that know the push services by their real names.
struct ProxyFlags: ParameterGroup {
  @Option(
    "--proxy", "PORT",
    "lead clients with this HTTPS_PROXY from the real push services to the stand-ins; 0: a free port",
    ports) var port: Int?
  @Option(
    repeated: "--allow", "HOST", "let clients of the proxy reach this host, too, at port 443", .host
  )
  var allowed: [ProxyHost]
  @Flag(
    "--accept-any-credential",
    "take a real service account or key as it is: its form is checked, nothing of it is kept")
  var acceptsAnyCredential

  func options(log: @escaping @Sendable (String) -> Void) throws(UsageError) -> ProxyOptions? {
    guard let port else {
      if !allowed.isEmpty { throw UsageError("--allow goes with --proxy") }
      return nil
    }
    var options = ProxyOptions()
    options.port = UInt16(clamping: port)
    options.allowedHosts = Set(allowed)
    options.onForbiddenHost = {
      log("the proxy refused a client of \($0); --allow \($0) would let it through")
    }
    return options
  }
}

struct DemoCommand: Subcommand {
  static let about = CommandHelp(
    "demo", "run the tutorial on this machine, with a virtual phone",
    discussion: """
      Runs the Azure Notification Hubs tutorial step by step, and shows for each step the curl
      command that does the same. It then stays up until Ctrl-C so that you can try them. Nothing is
      kept. You need no Azure, no Apple account and no phone.
      """,
    examples: ["belfry demo", "belfry demo --exit"])
  static let isServer = true

  @Flag("--exit", "end once the phone has shown the push: 0 if it did, 1 if it did not") var exits
  @Option("--port", "N", "the hub's port (default: free ports for everything)", ports)
  var port: Int?
  @Flag("--json", "in place of the story, print what came of it as one line of JSON") var json
  @Option("--timeout", "SECONDS", "how long to wait for the push", .integer(1...3600))
  var timeout = 30

  func run(in context: CommandContext) async throws {
    let signal = ShutdownSignal(within: .seconds(15), report: context.log)
    var options = DevelopmentStack.Options()
    options.port = port ?? 0
    options.log = context.log
    options.hubLog = context.hubLog(level: .warning)
    let stack = try await DevelopmentStack.start(options)
    do {
      var listener = context
      if json { listener.print = { _ in } }
      let ending = try await DemoStory(stack: stack, context: listener, limit: .seconds(timeout))
        .tell(stays: !exits)
      try CommandResult(ending, []).print(asJSON: json, in: context)
    } catch {
      await stack.stop(within: .zero)
      throw error
    }
    if !exits { _ = await signal.wait() }
    await stack.stop(within: .seconds(5))
  }
}

struct UpCommand: Subcommand {
  static let about = CommandHelp(
    "up", "run hub and push services for development and tests",
    discussion: """
      Starts a hub and the push services' stand-ins, prints their addresses and credentials, and
      serves until SIGTERM or Ctrl-C. Several can run side by side with --port 0.

      The hub speaks HTTP and, for clients that insist on it, HTTPS with a certificate for localhost
      of the authority printed as CA.

      With --database the hub is stored in PostgreSQL; several with the same database and the same
      emulator are nodes of one hub, with its keys and credentials. Without --data, secrets there
      are sealed under a publicly known key.

      With --proxy, programs that know the real push services reach the stand-ins (docs/testing.md).
      """,
    examples: [
      "belfry up", "belfry up --json --port 0 --data ./dev",
      "belfry up --emulator http://127.0.0.1:9400",
      "belfry up --database postgresql:///belfry --emulator http://127.0.0.1:9400 --port 0",
    ])
  static let isServer = true

  @Option(
    "--data", "DIR",
    "keep hub, keys and virtual phones here for the next run (default: nothing is kept)")
  var data: String?
  @Option("--port", "N", "the hub's port; 0 picks free ports for everything", ports)
  var port = 8080
  @Option("--https-port", "N", "the hub's port for HTTPS; free with --port 0", ports)
  var httpsPort = 8443
  @Option("--backend-port", "N", "the app backend's port; free with --port 0", ports)
  var backendPort = 8090
  @Option(
    "--hub", "NAME", "the hub's name", .hubName) var hub = "demo"
  @Option("--topic", "ID", "the bundle id of the app", .topic) var topic = StandIns.standardTopic
  @Option(
    "--emulator", "URL",
    "use the emulator with this control address, started by `belfry emulator`")
  var emulator: String?
  @Option(
    "--database", "URL",
    "keep the hub in this PostgreSQL database (or BELFRY_DATABASE): postgresql://user@host/database",
    DatabaseAddress.reader)
  var database: String?
  let proxy = ProxyFlags()
  @Option(.compatibility, .word) var compatibility = Compatibility.extended
  @Option(.logFormat, .word) var logFormat = LogFormat.text
  @Option(.logLevel, .word) var logLevel = LogLevel.info
  @Flag("--json", "print addresses and keys as one line of JSON when everything is up") var json

  func run(in context: CommandContext) async throws {
    let signal = ShutdownSignal(within: .seconds(15), report: context.log)
    var options = DevelopmentStack.Options()
    options.data = data
    options.port = port
    options.httpsPort = httpsPort
    options.backendPort = backendPort
    options.hub = hub
    options.topic = topic
    options.emulator = emulator
    options.proxy = try proxy.options(log: context.log)
    options.acceptsAnyCredential = proxy.acceptsAnyCredential
    if emulator != nil, options.proxy != nil || options.acceptsAnyCredential {
      throw UsageError(
        "--proxy and --accept-any-credential are of the emulator itself: give them to "
          + "`belfry emulator`")
    }
    options.compatibility = compatibility
    options.masterKey = context.environment[Setting.masterKey.variable]
    options.database = try database ?? Self.database(context.environment)
    options.databaseLease = try Self.databaseLease(context.environment)
    options.otherEmulators = RunningUp.all(context.environment).map(\.control)
    options.log = context.log
    options.hubLog = context.hubLog(level: logLevel, format: logFormat)
    let stack: DevelopmentStack
    do {
      try PlannedListener.checkApart(listeners)
      if let data, !FileManager.default.fileExists(atPath: data) {
        try PlannedListener.tryOut(listeners)
      }
      stack = try await DevelopmentStack.start(options)
    } catch let failure as CommandFailure
      // The second is of the emulator's listeners.
      where ["another program uses it", "Address already in use"]
      .contains(where: failure.description.contains) && options.port != 0
    {
      let holder = RunningUp.holder(of: failure.description, context.environment).map {
        ". It is the `belfry up` of \($0.hub) with its data in \($0.data)"
      }
      throw CommandFailure(
        "\(failure.description)\(holder ?? ""). `belfry up --port 0` takes free ports for everything"
          + (options.database == nil
            ? "" : "; for a second node of this hub add --emulator http://127.0.0.1:9400"),
        exitCode: failure.exitCode)
    }
    let addresses = stack.addresses
    let note = RunningUp(
      data: addresses.data, hub: addresses.hub.url, hubName: addresses.hub.name,
      control: addresses.emulator.control,
      backend: addresses.backend.url, portal: addresses.portal
    ).publish(context.environment)
    let keepsData = data != nil || options.database != nil
    try CommandResult(addresses, Self.lines(addresses, keepsData: keepsData))
      .print(asJSON: json, in: context)
    _ = await signal.wait()
    for file in [note, RunningUp.portalPage(in: note.deletingLastPathComponent())] {
      try? FileManager.default.removeItem(at: file)
    }
    await stack.stop(within: .seconds(10))
  }

  private var listeners: [PlannedListener] {
    let proxies = proxy.port.map { [PlannedListener("--proxy", port: $0)] } ?? []
    // All others are on free ports then.
    if port == 0 { return proxies }
    return (emulator == nil ? StandIns.listeners : []) + [
      PlannedListener("--port", port: port), PlannedListener("--https-port", port: httpsPort),
      PlannedListener("--backend-port", port: backendPort),
    ] + proxies
  }

  private static func database(_ environment: [String: String]) throws -> String? {
    let variable = Setting.database.variable
    guard let text = environment[variable] else { return nil }
    if let fault = DatabaseAddress.fault(text) { throw UsageError("\(variable) \(fault)") }
    return text
  }

  /// The database lease, which only tests set, so it has no option.
  private static func databaseLease(_ environment: [String: String]) throws -> Double {
    guard let text = environment[Setting.databaseLease.variable] else {
      return StoreNode.usualLease
    }
    guard case .integer(let range) = Setting.databaseLease.kind, let seconds = Int(text),
      range.contains(seconds)
    else { throw UsageError("\(Setting.databaseLease.variable) must be 2 to 60 seconds") }
    return Double(seconds)
  }

  private static func lines(_ addresses: DevelopmentStack.Addresses, keepsData: Bool) -> [String] {
    let hub = addresses.hub
    let channels = addresses.emulator.apnsChannels.map {
      ["channels   \($0)  (of APNs: broadcasts to Live Activities)"]
    }
    let proxy = addresses.emulator.proxy.map { ["proxy      \($0)  (HTTPS_PROXY of your tests)"] }
    return [
      "Belfry is up. Ctrl-C ends it" + (keepsData ? "." : "; nothing is kept without --data."),
      "",
      "hub        \(hub.url)  (\(hub.name))",
      "HTTPS      \(hub.httpsUrl)",
      "APNs       \(addresses.emulator.apns)  (topic \(addresses.emulator.topic))",
    ] + (channels ?? [])
      + addresses.emulator.services.sorted { $0.key < $1.key }.map { name, url in
        name.padded(to: 11) + url
      } + (proxy ?? []) + [
        "emulator   \(addresses.emulator.control)",
        "portal     \(addresses.portal)  (open it in a browser: everything the hub does)",
        "browser    \(addresses.browserPage)  (open it in a browser: it receives web pushes)",
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

struct EmulatorCommand: Subcommand {
  static let about = CommandHelp(
    "emulator", "run the push services' stand-ins alone",
    discussion: """
      Strict stand-ins of every push service over TLS, with virtual devices, faults and a clock that
      tests control, all through a control API. It listens on this machine only: it issues keys.
      `belfry up --emulator URL` uses it.

      With --proxy, programs that know the real push services reach the stand-ins: they need
      HTTPS_PROXY and trust in the printed CA, nothing else (docs/testing.md). Other hosts are
      refused, so that no test reaches the internet.
      """,
    examples: [
      "belfry emulator", "belfry emulator --json --port 0", "belfry emulator --proxy 9490",
    ])
  static let isServer = true

  @Option("--data", "DIR", "keep authority, apps and virtual phones here for the next run")
  var data: String?
  @Option(
    "--port", "N",
    "0 picks free ports (default: control 9400, APNs 9443 to 9446, others from 9450)",
    Reader(words: ["0"]) { text, name throws(UsageError) in
      guard text == "0" else { throw UsageError("\(name) must be 0, which picks free ports") }
      return 0
    }) var port: Int?
  @Option("--topic", "ID", "the bundle id of the default app", .topic)
  var topic = StandIns.standardTopic
  let proxy = ProxyFlags()
  @Flag("--json", "print the addresses as one line of JSON when everything is up") var json

  func run(in context: CommandContext) async throws {
    let proxyOptions = try proxy.options(log: context.log)
    let signal = ShutdownSignal(within: .seconds(15), report: context.log)
    let workspace = try Workspace(data)
    defer { workspace.remove() }
    let standIns = try await StandIns.start(
      in: workspace.data.path, onFreePorts: port != nil, topic: topic,
      proxy: proxyOptions, acceptsAnyCredential: proxy.acceptsAnyCredential, log: context.log)
    let addresses = StandInAddresses(standIns)
    var lines = [
      "The push services' stand-ins are up. Ctrl-C ends them.",
      "control   \(addresses.control)", "APNs      \(addresses.apns)  (topic \(addresses.topic))",
    ]
    if let channels = addresses.apnsChannels {
      lines.append("channels  \(channels)  (of APNs: broadcasts to Live Activities)")
    }
    for (name, url) in addresses.services.sorted(by: { $0.key < $1.key }) {
      lines.append(name.padded(to: 10) + url)
    }
    if let proxy = addresses.proxy {
      lines.append("proxy     \(proxy)  (HTTPS_PROXY of your tests)")
    }
    lines += [
      "CA        \(addresses.ca)", "",
      "Next, in another terminal: belfry up --emulator \(addresses.control)",
    ]
    try CommandResult(addresses, lines).print(asJSON: json, in: context)
    _ = await signal.wait()
    ShutdownSignal.step("the push services' stand-ins")
    await standIns.stop()
  }
}
