import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import PushEmulator
import StoreContract
import Testing

@testable import belfry

/// A hub as `belfry serve` runs it, the emulator beside it, and a broadcast under way.
@Suite("A hub that serves while its database is in trouble")
struct DiskTroubleTests {
  static let devices = 3_000

  @Test("on a full disk it refuses what it cannot keep, answers the rest, and loses nothing")
  func fullDisk() async throws {
    let disk = try FaultyDisk()
    var storage = SQLiteHubStore.Options()
    storage.fileSystem = disk.name
    try await withBroadcast(storage: storage) { world in
      disk.fault = .full
      try await world.expectRefusal(because: "disk", retryAfter: "10")
      disk.fault = .none
    }
  }

  @Test("started on a full disk after a kill it serves what it has, and says so")
  func startsOnAFullDisk() async throws {
    let world = try await World(storage: .init())
    // A copy of the files at work is what a kill leaves.
    let data = world.place.directory.path("data")
    let left = world.place.directory.path("left")
    try FileManager.default.copyItem(atPath: data, toPath: left)
    await world.runtime.stop(within: .seconds(5))
    try FileManager.default.removeItem(atPath: data)
    try FileManager.default.moveItem(atPath: left, toPath: data)

    let disk = try FaultyDisk()
    disk.fault = .full
    var storage = SQLiteHubStore.Options()
    storage.fileSystem = disk.name
    let again = try await World(at: world.place, storage: storage)
    try await again.expectRefusal(because: "disk", retryAfter: "10")
    disk.fault = .none
    let put = try await again.load.reply(to: again.load.put("new", handle: "aa", tags: []))
    #expect(put.status == 200)
    let id = try await again.broadcast()
    try await again.expectDelivered(id)
    await again.end()
  }

  @Test("with the database locked by another process it waits, says so, and goes on after")
  func locked() async throws {
    var storage = SQLiteHubStore.Options()
    storage.lockTimeout = 20
    try await withBroadcast(storage: storage) { world in
      let lock = try HeldLock(path: world.runtime.data.database)
      try await world.expectRefusal(because: "locked", retryAfter: "2")
      lock.release()
    }
  }

  @Test("with damaged pages it says what to do, and serves the hub whose pages are sound")
  func damaged() async throws {
    let place = try await damagedPlace()
    let database = try await serveDamaged(place)
    // With the backup in its place everything is as it was.
    for suffix in ["", "-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: database + suffix)
    }
    try FileManager.default.copyItem(
      atPath: place.directory.path(Self.backup), toPath: database)
    let restored = try await World(at: place, storage: .init())
    #expect(try await restored.health().status == 200)
    let other = try await restored.load(hub: "other")
    for number in 0..<200 {
      #expect(try await other.reply(to: other.get("lost-\(number)")).status == 200)
    }
    await restored.end()
  }

  private static let backup = "backup.sqlite"

  /// - Returns: The path of the database.
  private func serveDamaged(_ place: World.Place) async throws -> String {
    let again = try await World(at: place, storage: .init())
    let sick = try await again.load(hub: "other")
    var refusals = 0
    for number in 0..<200 {
      let reply = try await sick.reply(to: sick.get("lost-\(number)"))
      guard reply.status != 200 else { continue }
      #expect(reply.status == 503)
      #expect(reply.headers["retry-after"] == "60")
      #expect(reply.body.contains("damaged") && reply.body.contains("backup"))
      refusals += 1
    }
    #expect(refusals > 0)
    guard case .unavailable(let reason) = await again.runtime.service.store.condition() else {
      throw ProcessFault("health has not noticed")
    }
    #expect(reason.contains("damaged"))
    let health = try await again.health()
    #expect(health.status == 503)
    #expect(health.body.contains("store-unavailable") && health.body.contains("damaged"))
    let id = try await again.broadcast()
    try await again.expectDelivered(id)
    await again.runtime.stop(within: .seconds(5))
    return again.runtime.data.database
  }

  /// Where a hub has stopped whose database was damaged afterwards; its directory is free again.
  private func damagedPlace() async throws -> World.Place {
    let world = try await World(storage: .init())
    let store = world.runtime.service.store
    _ = try await world.runtime.service.createHub(named: "other")
    let other = try #require(try await store.hub(named: "other")).id
    // Rows between those of the two hubs, so that no page holds some of both.
    for number in 0..<100 {
      try await store.put(SampleDevice("device-between-\(number)"), hub: other, at: .now)
    }
    try await concurrently(Array(0..<200)) { number in
      try await store.put(SampleDevice("lost-\(number)"), hub: other, at: .now)
    }
    await world.runtime.stop(within: .seconds(5))
    try FileManager.default.copyItem(
      atPath: world.runtime.data.database, toPath: world.place.directory.path(Self.backup))
    let damaged = try damagePages(
      of: URL(fileURLWithPath: world.runtime.data.database), holding: "lost-",
      sparing: "device-")
    try #require(damaged > 0)
    return world.place
  }

  /// Has a broadcast come under way, does `body`, and sees the broadcast to its end.
  private func withBroadcast(
    storage: SQLiteHubStore.Options, _ body: (World) async throws -> Void
  ) async throws {
    let world = try await World(storage: storage)
    do {
      // Slow enough to be under way for a while.
      _ = try await world.emulator.control(
        "POST", "/v1/faults",
        body: #"{"pns":"apns","stage":"after","action":{"type":"latency","ms":200}}"#)
      #expect(try await world.health().status == 200)
      let id = try await world.broadcast()
      try await withLimit(.seconds(60), "the first push") {
        while try world.emulator.requestCount() == 0 { try await Task.sleep(for: .milliseconds(1)) }
      }
      try await body(world)
      let put = try await world.load.reply(to: world.load.put("new", handle: "aa", tags: []))
      #expect(put.status == 200, "writes work again by themselves")
      #expect(await world.runtime.service.store.condition() == .healthy)
      let health = try await world.health()
      #expect(health.status == 200 && health.body.contains(#""reasons":[]"#), "\(health.body)")
      try await world.expectDelivered(id)
    } catch {
      await world.end()
      throw error
    }
    await world.end()
  }
}

/// A running hub with devices, and the push service.
private struct World: Sendable {
  /// What outlives the hub.
  struct Place: Sendable {
    let directory: TemporaryDirectory
    let emulator: EmulatorServer
    let phones: [EmulatorServer.VirtualDevice]
    let authorityPEM: String
  }

  let place: Place
  let runtime: HubRuntime
  let load: HubLoad
  var emulator: EmulatorServer { place.emulator }
  var phones: [EmulatorServer.VirtualDevice] { place.phones }

  init(storage: SQLiteHubStore.Options) async throws {
    let emulator = EmulatorServer(.onFreePorts)
    let addresses = try await emulator.start()
    let app = try emulator.app()
    place = Place(
      directory: try TemporaryDirectory(), emulator: emulator,
      phones: try emulator.makeDevices(app: app, count: DiskTroubleTests.devices),
      authorityPEM: addresses.authorityPEM)
    runtime = try await Self.start(place, storage)
    _ = try await runtime.service.createHub(named: "demo")
    try await runtime.service.credentials.set(
      PushCredential(
        platform: .apns,
        properties: [
          "Token": app.p8, "KeyId": app.keyID, "AppId": app.teamID, "AppName": app.bundleID,
          "Endpoint": addresses.apnsProduction,
        ], modifiedAt: .now), hub: "demo", checkedBy: runtime.gateways)
    let hub = try #require(try await runtime.service.store.hub(named: "demo")).id
    let store = runtime.service.store
    try await concurrently(Array(place.phones.enumerated())) { number, phone in
      try await store.put(
        SampleDevice("device-\(number)", handle: phone.token, tags: ["all"]), hub: hub, at: .now)
    }
    load = try await Self.load(runtime, hub: "demo")
  }

  /// What a stopped hub has left, served again.
  init(at place: Place, storage: SQLiteHubStore.Options) async throws {
    self.place = place
    runtime = try await Self.start(place, storage)
    load = try await Self.load(runtime, hub: "demo")
  }

  private static func start(
    _ place: Place, _ storage: SQLiteHubStore.Options
  ) async throws -> HubRuntime {
    var options = HubRuntime.Options(data: try DataDirectory.make(at: place.directory.path("data")))
    options.port = 0
    options.anchorsPEM = Array(place.authorityPEM.utf8)
    options.serviceHosts = ["127.0.0.1"]
    options.storage = storage
    return try await HubRuntime.start(options)
  }

  func load(hub: String) async throws -> HubLoad { try await Self.load(runtime, hub: hub) }

  private static func load(_ runtime: HubRuntime, hub: String) async throws -> HubLoad {
    let policy = try await runtime.service.policies.get(
      named: AccessPolicy.defaultFullName, hub: hub)
    return try HubLoad(
      url: runtime.url ?? "", hub: hub, keyName: policy.name, key: policy.primaryKey)
  }

  func end() async {
    await runtime.stop(within: .seconds(5))
    await emulator.stop()
    place.directory.remove()
  }

  /// Sends to all phones.
  /// - Returns: The id of the notification.
  func broadcast() async throws -> NotificationID {
    let reply = try await load.reply(to: load.send(#"{"aps":{"alert":"all"}}"#, to: "all"))
    #expect(reply.status == 201)
    let location = try #require(reply.headers["location"])
    let path = try #require(URL(string: location)).lastPathComponent
    return NotificationID(rawValue: path)
  }

  /// What cannot be kept is refused, and what can be read is answered.
  func expectRefusal(because word: String, retryAfter: String) async throws {
    let refused = try await load.reply(to: load.put("new", handle: "aa", tags: []))
    #expect(refused.status == 503)
    #expect(refused.headers["retry-after"] == retryAfter)
    #expect(refused.body.contains(word) && refused.body.contains("TrackingId"))
    let send = try await load.reply(to: load.send(#"{"aps":{"alert":"no"}}"#, to: "all"))
    #expect(send.status == 503)
    let read = try await load.reply(to: load.get("device-1"))
    #expect(read.status == 200)
    guard case .readOnly(let reason) = await runtime.service.store.condition() else {
      Issue.record("health has not noticed")
      return
    }
    #expect(reason.contains(word))
    let health = try await health()
    #expect(health.status == 503)
    #expect(health.body.contains("store-read-only") && health.body.contains(word))
    #expect(try await load.reply(to: "GET /health/live HTTP/1.1\r\nHost: h\r\n\r\n").status == 200)
  }

  /// What the server says of itself over HTTP.
  func health() async throws -> RawReply {
    try await load.reply(to: "GET /health/ready HTTP/1.1\r\nHost: h\r\n\r\n")
  }

  /// Waits for the end of a broadcast: every phone has it once, and the counts add up.
  func expectDelivered(_ id: NotificationID) async throws {
    let hub = try #require(try await runtime.service.store.hub(named: "demo")).id
    let record = try #require(
      try await runtime.service.dispatcher.record(of: id, hub: hub, finishedWithin: .seconds(120)))
    #expect(record.state == .completed)
    #expect(
      record.counts == [
        OutcomeKey(platform: .apns, isTemplate: false, outcome: .success): phones.count
      ])
    let wrong = try phones.filter { try emulator.pushes(shownOn: $0).count != 1 }
    #expect(wrong.isEmpty)
  }
}
