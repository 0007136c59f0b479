import Cryptography
import Foundation
import HubCore
import HubStorage
import NotificationHubs
import PushGateways

/// A hub that sends a template notification to the devices of a store, measured from the accepted
/// send to the last outcome on disk: audience, template, APNs over TLS, outcomes, checkpoints. Each
/// node is a child process, so that its CPU time and memory are the hub's alone; the push service
/// is a sink in another process.
enum BroadcastHub {
  /// The hidden first word that starts the sending node, followed by the place, the number of
  /// sends, the number of nodes and the tags.
  static let word = "broadcast-hub"
  /// The hidden first word of a further node, followed by the place and the sink's authority.
  static let nodeWord = "broadcast-node"

  /// The path of a program that takes the place of our own sink, from the environment:
  /// `script/bench-peers broadcast` sets it to one that costs less than the hub.
  private static let sink = ProcessInfo.processInfo.environment["BELFRY_BENCH_SINK"]

  /// The location of the devices.
  struct Place {
    /// The absolute path of a file, or the address of a PostgreSQL database: a URL or libpq's
    /// keywords.
    var store: String
    var hub = StoreFixture.hubName
    /// The number of nodes; more than one only on PostgreSQL.
    var nodes = 1
  }

  struct Figures: Codable, Sendable {
    /// The number of devices reached by all sends together.
    var devices: Int
    var sends: Int
    /// The CPU seconds of all nodes.
    var cpuSeconds: Double
    /// The CPU seconds of the PostgreSQL server; 0 for a file.
    var databaseCPUSeconds: Double
    /// The shares of time that its statements waited for locks, and for anything else.
    var lockWaits: Double
    var otherWaits: Double
    var seconds: Double
    var sinkCPUSeconds: Double
    /// The resident memory of the sending node: before the first send, the peak during the sends,
    /// and after the last.
    var beforeMB: Double
    var peakMB: Double
    var afterMB: Double

    var cpuMicroseconds: Double { cpuSeconds / Double(max(1, devices)) * 1e6 }
    var databaseMicroseconds: Double { databaseCPUSeconds / Double(max(1, devices)) * 1e6 }

    var notes: [String] {
      let busy = { (cpu: Double) in Int((cpu / seconds * 100).rounded()) }
      return [
        "\(devices) devices in \(seconds.shortest) s",
        "the hub kept \(busy(cpuSeconds)) % of a core busy, the sink beside it "
          + "\(busy(sinkCPUSeconds)) %: \((sinkCPUSeconds / Double(max(1, devices)) * 1e6).shortest)"
          + " µs CPU per push",
      ]
    }
  }

  /// Starts the hub, makes it send, and returns the figures.
  ///
  /// - Parameters:
  ///   - tags: A tag expression, or nil for all devices.
  ///   - times: The number of sends, in sequence.
  static func send(in place: Place, to tags: String?, times: Int) throws -> Figures {
    let child = try ChildProcess<Figures, Bool>(
      [word, place.store, place.hub, "\(place.nodes)", "\(times)"] + (tags.map { [$0] } ?? []))
    _ = try child.stop()
    return child.greeting
  }

  /// Runs in the sending child.
  static func run(_ words: [String]) async throws {
    guard words.count >= 4, let nodes = Int(words[2]), let sends = Int(words[3]) else {
      throw BenchmarkError("\(word) wants a store, a hub, how many nodes and sends, perhaps tags")
    }
    let (place, tags) = (words[0], words.count > 4 ? words[4] : nil)
    let sink = try TransportSinkProcess(program: sink)
    let node = try await Node(place, authorityPEM: sink.authorityPEM)
    guard let hub = try await node.store.hub(named: words[1]) else {
      throw BenchmarkError("no hub \(words[1]) in \(place)")
    }
    try await node.service.credentials.set(
      PushCredential(
        platform: .apns,
        properties: [
          "Token": try P256PrivateKey().pem(), "KeyId": "ABC123DEFG", "AppId": "DEF123GHIJ",
          "AppName": "com.example.app", "Endpoint": "https://127.0.0.1:\(sink.port)",
        ], modifiedAt: Date()), hub: hub.name, checkedBy: node.gateways)
    try await node.dispatcher.start()
    // Warm-up with a few devices, after which connection, token and statements are ready as in a
    // running hub.
    _ = try await send(to: "city7 && group7", node.service, hub)
    let authority = String(decoding: sink.authorityPEM, as: UTF8.self)
    let others = try (1..<max(1, nodes)).map { _ in
      try ChildProcess<Bool, Double>([nodeWord, place, authority])
    }

    let server = isServer(place) ? try PostgresServer(place) : nil
    let waits = server?.sampleWaits()
    let serverBefore = server?.cpuSeconds ?? 0
    let beforeMB = ProcessUsage.residentMB
    let before = ProcessUsage.current()
    let start = ContinuousClock.now
    var devices = 0
    for _ in 0..<sends { devices += try await send(to: tags, node.service, hub) }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let after = ProcessUsage.current()
    let afterMB = ProcessUsage.residentMB
    let serverAfter = server?.cpuSeconds ?? 0
    waits?.cancel()
    let waited = try await waits?.value
    let othersCPU = try others.map { try $0.stop() }.reduce(0, +)
    try await node.close()
    try say(
      Figures(
        devices: devices, sends: sends,
        cpuSeconds: after.cpuSeconds - before.cpuSeconds + othersCPU,
        databaseCPUSeconds: serverAfter - serverBefore, lockWaits: waited?.locks ?? 0,
        otherWaits: waited?.others ?? 0, seconds: seconds, sinkCPUSeconds: try sink.stop(),
        beforeMB: beforeMB, peakMB: max(after.peakMB, beforeMB), afterMB: afterMB))
    _ = FileHandle.standardInput.readDataToEndOfFile()
    try say(true)
  }

  /// Runs in the child of a further node: takes work until its input ends, and reports the CPU
  /// time.
  static func runNode(_ words: [String]) async throws {
    guard words.count == 2 else { throw BenchmarkError("\(nodeWord) wants a store and a PEM") }
    let node = try await Node(words[0], authorityPEM: Array(words[1].utf8))
    try await node.dispatcher.start()
    let before = ProcessUsage.current().cpuSeconds
    try say(true)
    _ = FileHandle.standardInput.readDataToEndOfFile()
    try say(ProcessUsage.current().cpuSeconds - before)
    try await node.close()
  }

  /// Whether it is an address, not the absolute path of a file.
  private static func isServer(_ place: String) -> Bool { !place.hasPrefix("/") }

  private struct Node {
    let store: any HubStore
    let gateways: PushGatewayDirectory
    let dispatcher: Dispatcher
    let service: HubService

    init(_ place: String, authorityPEM: [UInt8]) async throws {
      store =
        if isServer(place) {
          try await PostgresFixture.node(place)
        } else {
          try await SQLiteHubStore.open(at: place, sealing: NoSealing())
        }
      var services = PushGatewaysConfiguration.forStandIns
      services.extraAnchorsPEM = authorityPEM
      gateways = PushGatewayDirectory(services, clock: .system, random: .system)
      dispatcher = Dispatcher(store: store, gateways: gateways, clock: .system, random: .system)
      service = HubService(
        store: store, directory: HubDirectory(store: store, clock: .system), dispatcher: dispatcher,
        clock: .system, random: .system)
    }

    func close() async throws {
      await dispatcher.stop(within: .seconds(5))
      await gateways.close()
      try await store.close()
    }
  }

  /// - Returns: The number of devices that got it, which is all that the expression reaches.
  private static func send(to tags: String?, _ service: HubService, _ hub: Hub) async throws -> Int
  {
    var headers = [("ServiceBusNotification-Format", "template")]
    if let tags { headers.append(("ServiceBusNotification-Tags", tags)) }
    let sent = try await service.send(
      hub: hub, headers: headers, body: Array(#"{"message":"Hello from Postman!"}"#.utf8))
    let record = try await service.dispatcher.record(
      of: sent.id, hub: hub.id, finishedWithin: .seconds(600))
    guard let record, record.state == .completed else {
      throw BenchmarkError("the broadcast did not complete")
    }
    let successes = record.counts.filter { $0.key.outcome == .success }.values.reduce(0, +)
    guard successes == record.counts.values.reduce(0, +) else {
      throw BenchmarkError("only \(successes) devices got the broadcast")
    }
    return successes
  }
}
