import Foundation
import NotificationHubs
import PushEmulator
import StoreContract

/// One run of ``KillTest``: the emulator, the hub of the moment, and what has been asked of it.
actor KillTestRun {
  /// A notification that was accepted, and whom it is for.
  struct Sent {
    /// The text of its alert, by which it is known on the devices.
    let text: String
    let id: String
    /// Places in ``devices``.
    let audience: Range<Int>
  }

  /// Devices that a scheduled notification goes to.
  static let scheduledAudience = 100
  /// `DispatchLimits`: pages of a notification that a crash may repeat, and retries under way.
  private static let pagesInFlight = 8_000
  private static let retriesInFlight = 4_000
  /// Requests that the emulator lets be in flight on a connection.
  private static let streams = 1_000

  let options: KillTest.Options
  let emulator: EmulatorServer
  let devices: [EmulatorServer.VirtualDevice]
  private let control: String
  private let directory: TemporaryDirectory
  private var generator: SeededGenerator
  /// `nil` for a hub that keeps its data in a file.
  private let database: PostgresServer?
  private let address: String?
  private(set) var nodes: [(process: BelfryProcess, line: UpLine)] = []
  /// Which of ``nodes`` is asked and killed in this round.
  private var current = 0
  var hub: (process: BelfryProcess, line: UpLine) { nodes[current] }
  var report = KillTest.Report()
  /// Broadcasts, schedules and single sends that were acknowledged.
  var sent: [Sent] = []
  /// Broadcasts that may have pages in flight.
  private var broadcastsInFlight = 0

  init(_ options: KillTest.Options) async throws {
    self.options = options
    generator = SeededGenerator(seed: options.seed)
    directory = try TemporaryDirectory()
    var settings = EmulatorOptions.onFreePorts
    settings.seed = options.seed
    settings.journal = false
    settings.eventsPerDevice = 100_000
    settings.historyBytes = 16 << 30
    settings.bytesPerDevice = 16 << 30
    settings.waitingBytes = 16 << 30
    emulator = EmulatorServer(settings)
    control = try await emulator.start().control
    devices = try emulator.makeDevices(app: try emulator.app(), count: options.devices)
    database = options.nodes > 1 || options.usesPostgres ? try PostgresServer() : nil
    address = try database?.makeDatabase()
    for node in 0..<options.nodes {
      if node > 0 {
        // They share a master key, not a directory.
        let data = directory.path("node-\(node)")
        try FileManager.default.createDirectory(
          atPath: data, withIntermediateDirectories: false)
        try FileManager.default.copyItem(
          atPath: directory.path("node-0/master.key"), toPath: data + "/master.key")
      }
      nodes.append(try await BelfryProcess.up(words(node)))
    }
  }

  /// The arguments that a node is started with.
  private func words(_ node: Int) -> [String] {
    ["--emulator", control, "--data", directory.path("node-\(node)")]
      + (address.map { ["--database", $0] } ?? [])
  }

  /// Ends everything and leaves nothing behind.
  func end() async {
    for node in nodes {
      node.process.signal(SIGKILL)
      _ = try? await node.process.exitCode()
    }
    await emulator.stop()
    database?.stop()
    directory.remove()
  }

  func all() async throws -> KillTest.Report {
    try await register()
    try await addFaults()
    for round in 1...max(1, options.kills) {
      try await self.round(round)
      if !options.hasErrorsThroughout && round == 1 { try await addFaults(errors: false) }
    }
    let resets = try await firedResets()
    report.repeatLimit += resets * Self.streams
    _ = try await emulator.control("DELETE", "/v1/faults")
    try await awaitOutcomes()
    try await awaitSingleSends()
    try await checkStatistics()
    try checkDevices()
    options.log(
      "\(report.kills) kills, \(resets) connections reset: \(report.pushes) pushes, "
        + "\(report.repeats) of them repeats (at most \(report.repeatLimit) allowed); "
        + "\(report.acknowledgedWrites) writes and \(report.acknowledgedSends) sends "
        + "acknowledged while the kills came")
    return report
  }

  // MARK: Before

  private func register() async throws {
    let load = try HubLoad(hub.line)
    let devices = devices
    let done = await load.acknowledged(devices.count, width: 8) { number in
      load.put(
        "device-\(number)", handle: devices[number].token,
        tags: ["all", "d-\(number)"] + (number < Self.scheduledAudience ? ["some"] : []))
    }
    guard done.count == devices.count else {
      throw ProcessFault("only \(done.count) of \(devices.count) devices could be registered")
    }
    options.log("\(devices.count) devices registered, seed \(options.seed)")
  }

  private func addFaults(errors: Bool = true) async throws {
    var rules = [
      #"{"pns":"apns","action":{"type":"latency","uniform":[0,40]}}"#,
      #"""
      {"pns":"apns","when":{"probability":\#(2 / Double(options.devices))},
       "action":{"type":"reset","at":"reply"}}
      """#,
    ]
    if errors {
      rules.append(
        #"{"pns":"apns","action":{"type":"error-rate","rates":{"503":0.02,"429":0.01}}}"#)
    }
    report.repeatLimit += try await firedResets() * Self.streams
    _ = try await emulator.control("DELETE", "/v1/faults")
    for rule in rules {
      let (status, body) = try await emulator.control("POST", "/v1/faults", body: rule)
      guard status == 201 else { throw ProcessFault(String(decoding: body, as: UTF8.self)) }
    }
  }

  /// Connections that the emulator has reset.
  private func firedResets() async throws -> Int {
    struct List: Decodable {
      struct Fault: Decodable {
        struct Action: Decodable { let type: String }
        let action: Action
        let fired: Int
      }
      let faults: [Fault]
    }
    let (_, body) = try await emulator.control("GET", "/v1/faults")
    return try JSONDecoder().decode(List.self, from: Data(body)).faults
      .reduce(0) { $0 + ($1.action.type == "reset" ? $1.fired : 0) }
  }

  // MARK: Rounds

  /// Broadcasts, has a schedule come due and others write and send, and kills the hub under it.
  private func round(_ round: Int) async throws {
    current = Int.random(in: nodes.indices, using: &generator)
    let before = try emulator.requestCount()
    let broadcast = try await send("b-\(round)", to: "all", 0..<devices.count)
    broadcastsInFlight += 1
    let due = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down) + 2)
    let audience = 0..<min(Self.scheduledAudience, devices.count)
    let receipt = try await hub.line.client().schedule(
      Self.notification("s-\(round)"), at: due, to: "some")
    sent.append(Sent(text: "s-\(round)", id: receipt.notificationID ?? "", audience: audience))

    let load = try HubLoad(hub.line)
    async let writes = load.acknowledged(3_000, width: 2) { number in
      load.put("late-\(round)-\(number)", handle: HubLoad.handle(round, number), tags: ["late"])
    }
    let targets = (0..<200).map { _ in Int.random(in: 0..<devices.count, using: &generator) }
    async let sends = load.acknowledged(targets.count, width: 1) { number in
      load.send(Self.payload("m-\(round)-\(number)"), to: "d-\(targets[number])")
    }
    let moment = try await momentToKill(before: before, due: due)
    try await kill()
    let (written, posted) = await (writes, sends)
    for number in posted {
      let target = targets[number]
      sent.append(Sent(text: "m-\(round)-\(number)", id: "", audience: target..<target + 1))
    }
    report.acknowledgedWrites += written.count
    report.acknowledgedSends += posted.count
    let again = try await restart()
    let lost = try await missing(written.map { "late-\(round)-\($0)" })
    if !lost.isEmpty { report.faults.append("lost although acknowledged: \(lost.prefix(5))") }
    options.log(
      "round \(round): killed \(moment)\(again); \(written.count) writes and \(posted.count) sends "
        + "acknowledged meanwhile")
    // Now and then the next round comes while this broadcast still has pages to read.
    if Bool.random(using: &generator) || round == options.kills {
      try await awaitProgress(of: broadcast)
      broadcastsInFlight = 0
    }
  }

  private func momentToKill(before: Int, due: Date) async throws -> String {
    let pause = Int.random(in: 0...20, using: &generator)
    switch Int.random(in: 0..<4, using: &generator) {
    case 0:
      try await Task.sleep(for: .milliseconds(pause))
      return "\(pause) ms after the broadcast was accepted"
    case 1:
      let rest = max(0, due.timeIntervalSinceNow) + Double(pause) * 0.003
      try await Task.sleep(for: .seconds(rest))
      return "\(pause * 3) ms after a schedule came due"
    default:
      let share = Double.random(in: 0...1, using: &generator)
      let goal = before + Int(share * Double(devices.count))
      try await withLimit(.seconds(120), "\(goal) pushes") { [emulator] in
        while try emulator.requestCount() < goal { try await Task.sleep(for: .milliseconds(1)) }
      }
      return "with \(Int(share * 100)) % of the broadcast sent"
    }
  }

  private func kill() async throws {
    hub.process.signal(SIGKILL)
    _ = try await hub.process.exitCode()
    report.kills += 1
    report.repeatLimit += Self.pagesInFlight * broadcastsInFlight + Self.retriesInFlight
  }

  /// Starts the hub; in every third round or so it is killed once more, while it starts or soon
  /// after.
  private func restart() async throws -> String {
    var words = ""
    let wantsAnother = Int.random(in: 0..<3, using: &generator) == 0
    let pause = Int.random(in: 0...800, using: &generator)
    if wantsAnother {
      let process = try BelfryProcess(["up", "--json", "--port", "0"] + self.words(current))
      try await Task.sleep(for: .milliseconds(pause))
      nodes[current] = (process, hub.line)
      try await kill()
      words = ", and again \(pause) ms into the next start"
    }
    nodes[current] = try await BelfryProcess.up(self.words(current))
    return words
  }

  private func send(_ text: String, to tag: Tag, _ audience: Range<Int>) async throws -> Sent {
    let receipt = try await hub.line.client().send(Self.notification(text), to: .tag(tag))
    let new = Sent(text: text, id: receipt.notificationID ?? "", audience: audience)
    sent.append(new)
    return new
  }

  static func payload(_ text: String) -> String { #"{"aps":{"alert":"\#(text)"}}"# }

  private static func notification(_ text: String) -> PushNotification { .apple(payload(text)) }
}
