import Foundation
import HubCore
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@testable import HubStorage

@Suite("A log that is damaged or gone")
struct LostLogTests {
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  /// The files of a store as `kill -9` leaves them: copied while it works.
  private static func killed(in directory: TemporaryDirectory) async throws -> String {
    let path = directory.path("hub.sqlite")
    let left = directory.path("left.sqlite")
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    let hub = try await store.createHub(
      named: "hub1", registrationTTL: nil, policies: [], at: now
    ).id
    for number in 0..<20 {
      try await store.put(SampleDevice("i\(number)"), hub: hub, at: now)
    }
    for suffix in ["", "-wal", "-mark"] {
      try FileManager.default.copyItem(atPath: path + suffix, toPath: left + suffix)
    }
    try await store.close()
    return left
  }

  private static func open(_ path: String) async throws -> (lost: Int64?, devices: Int) {
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    var devices = 0
    if let hub = try await store.hub(named: "hub1") {
      devices = try await store.installations(hub: hub.id).count
    }
    let lost = store.discarded?.count
    try await store.close()
    return (lost, devices)
  }

  @Test("that is whole is no loss, nor is a store that was closed")
  func whole() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let left = try await Self.killed(in: directory)
    for path in [left, left, directory.path("hub.sqlite")] {
      let (lost, devices) = try await Self.open(path)
      #expect(lost == nil && devices == 20)
    }
  }

  @Test("is told at the start, once, with how much is gone", arguments: [true, false])
  func lost(isMissing: Bool) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let left = try await Self.killed(in: directory)
    if isMissing {
      try FileManager.default.removeItem(atPath: left + "-wal")
    } else {
      let file = try #require(FileHandle(forUpdatingAtPath: left + "-wal"))
      let size = try file.seekToEnd()
      try file.seek(toOffset: size / 2)
      try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
      try file.close()
    }
    let (lost, devices) = try await Self.open(left)
    #expect((lost ?? 0) >= 1 && devices < 20)
    #expect(try await Self.open(left).lost == nil)
  }

  @Test("a mark that makes no sense tells nothing")
  func badMark() async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let left = try await Self.killed(in: directory)
    try Data(repeating: 0x7F, count: 24).write(to: URL(fileURLWithPath: left + "-mark"))
    #expect(try await Self.open(left).lost == nil)
  }
}
