import Cryptography
import Foundation
import HubCore
import HubStorage
import NotificationHubs
import PushGateways

/// A hub that sends a template notification to the devices of a store's file, from the accepted
/// send to the last outcome on disk: audience, template, APNs over TLS, outcomes, checkpoints. It
/// is a child process, so that its CPU time and its memory are the hub's alone; the push service is
/// a sink in a process of its own.
enum BroadcastHub {
  /// The hidden first word that starts it; the file, how many sends, and the tags follow.
  static let word = "broadcast-hub"

  struct Figures: Codable, Sendable {
    /// Reached, by all sends together.
    var devices: Int
    var sends: Int
    var cpuSeconds: Double
    var seconds: Double
    var sinkCPUSeconds: Double
    /// Resident memory before the first send, the most during them, and after the last.
    var beforeMB: Double
    var peakMB: Double
    var afterMB: Double

    var cpuMicroseconds: Double { cpuSeconds / Double(max(1, devices)) * 1e6 }

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

  /// Starts the hub, lets it send, and returns what that took.
  ///
  /// - Parameters:
  ///   - tags: An expression, or nil for all devices.
  ///   - times: How many sends, one after the other.
  static func send(in file: String, to tags: String?, times: Int) throws -> Figures {
    let child = try ChildProcess<Figures, Bool>(
      [word, file, "\(times)"] + (tags.map { [$0] } ?? []))
    _ = try child.stop()
    return child.greeting
  }

  /// In the child.
  static func run(_ words: [String]) async throws {
    guard words.count >= 2, let sends = Int(words[1]) else {
      throw BenchmarkError("\(word) wants a file, how many sends, and perhaps tags")
    }
    let store = try await SQLiteHubStore.open(at: words[0], sealing: NoSealing())
    let sink = try TransportSinkProcess()
    var services = PushGatewaysConfiguration.forStandIns
    services.extraAnchorsPEM = sink.authorityPEM
    let gateways = PushGatewayDirectory(services)
    let dispatcher = Dispatcher(store: store, gateways: gateways, clock: .system)
    let service = HubService(
      store: store, directory: HubDirectory(store: store, clock: .system), dispatcher: dispatcher,
      clock: .system)
    guard let hub = try await store.hubs().first else {
      throw BenchmarkError("no hub in \(words[0])")
    }
    try await service.setCredential(
      PushCredential(
        platform: .apns,
        properties: [
          "Token": try P256PrivateKey().pem(), "KeyId": "ABC123DEFG", "AppId": "DEF123GHIJ",
          "AppName": "com.example.app", "Endpoint": "https://127.0.0.1:\(sink.port)",
        ], modifiedAt: Date()), hub: hub.name, checkedBy: gateways)
    try await dispatcher.start()
    // A few devices first: connection, token and statements are ready then, as in a running hub.
    _ = try await send(to: "city7 && group7", service, hub)

    let beforeMB = ProcessUsage.residentMB
    let before = ProcessUsage.current()
    let start = ContinuousClock.now
    var devices = 0
    for _ in 0..<sends {
      devices += try await send(to: words.count > 2 ? words[2] : nil, service, hub)
    }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let after = ProcessUsage.current()
    let afterMB = ProcessUsage.residentMB
    await dispatcher.stop(within: .seconds(5))
    await gateways.close()
    try await store.close()
    try say(
      Figures(
        devices: devices, sends: sends, cpuSeconds: after.cpuSeconds - before.cpuSeconds,
        seconds: seconds, sinkCPUSeconds: try sink.stop(), beforeMB: beforeMB,
        peakMB: max(after.peakMB, beforeMB), afterMB: afterMB))
    _ = FileHandle.standardInput.readDataToEndOfFile()
    try say(true)
  }

  /// - Returns: How many devices got it, which is all that the expression reaches.
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
