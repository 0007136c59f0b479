/// `belfry emulator`
struct EmulatorCommand: Subcommand {
  static let help = CommandHelp(
    "emulator", "run the push services' stand-ins alone",
    options: [
      .value("--data", "DIR", "keep authority, apps and virtual phones here for the next run"),
      .value(
        "--port", "N",
        "0 picks free ports (default: control 9400, APNs 9443 to 9446, others from 9450)"),
      .value(
        "--topic", "ID", "the bundle id of the default app (default \(StandIns.standardTopic))"),
      .flag("--json", "print the addresses as one line of JSON when everything is up"),
    ],
    discussion: """
      Strict stand-ins of every push service over TLS, with virtual devices, faults and a clock
      that tests drive, all through a control API. It listens on this machine only: it hands out keys.
      `belfry up --emulator URL` uses it.
      """,
    examples: ["belfry emulator", "belfry emulator --json --port 0"])

  let data: String?
  let onFreePorts: Bool
  let topic: String
  let json: Bool

  init(_ words: Words) throws {
    data = words.value("--data")
    if let port = words.value("--port"), port != "0" {
      throw words.fault("--port wants 0, which picks free ports")
    }
    onFreePorts = words.value("--port") != nil
    topic = words.value("--topic") ?? StandIns.standardTopic
    try StandIns.check(topic: topic, in: words)
    json = words.flag("--json")
  }

  func run(in context: CommandContext) async throws {
    let signal = ShutdownSignal()
    let workspace = try Workspace(data)
    defer { workspace.remove() }
    let standIns = try await StandIns.start(
      in: workspace.data.path, onFreePorts: onFreePorts, topic: topic,
      log: context.log)
    let addresses = StandInAddresses(standIns)
    if json {
      try context.printJSON(addresses)
    } else {
      context.print("The push services' stand-ins are up. Ctrl-C ends them.")
      context.print("control   \(addresses.control)")
      context.print("APNs      \(addresses.apns)  (topic \(addresses.topic))")
      if let channels = addresses.apnsChannels {
        context.print("channels  \(channels)  (of APNs: broadcasts to Live Activities)")
      }
      for (name, url) in addresses.services.sorted(by: { $0.key < $1.key }) {
        context.print(name.padded(to: 10) + url)
      }
      context.print("CA        \(addresses.ca)")
      context.print("")
      context.print("Next, in another terminal: belfry up --emulator \(addresses.control)")
    }
    _ = await signal.wait()
    await standIns.stop()
  }
}
