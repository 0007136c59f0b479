import Foundation
import HubCore
import HubStorage
import NotificationHubs

/// Stores on disk with many devices, each created once and shared by the rows that need it.
///
/// Each device has one common template, three tags (one of 2, one of 10, one of 1000), and every
/// fourth a user: two registrations each. The first thousand have an additional tag, ``crew``.
actor StoreFixture {
  static let shared = StoreFixture()
  /// The moment at which the devices register and the sends happen.
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  struct Loaded: Sendable {
    let store: SQLiteHubStore
    let hub: Hub.ID
    let path: String
    let devices: Int
    /// The time from the call to the opened store, with all devices in the file, in seconds.
    let openSeconds: Double
  }

  static let allDevices = BenchmarkOption.devices.value ?? 1_000_000
  /// The number of devices of a quick run.
  static let quickDevices = 100_000
  /// The name of the hub with the devices.
  static let hubName = "devices"
  /// A tag of a thousand devices, regardless of their total number.
  static let crew: Tag = "crew"

  private var loaded: Loaded?
  /// The databases created so far, by number of devices.
  private var files: [Int: String] = [:]
  private var directory: URL?

  /// The time to open the store with all devices in the file.
  static let start = FigureRow("start.s", "s", .atMost(1)) { isQuick in
    let fixture = try await shared.store(isQuick: isQuick)
    return BenchmarkMeasurement(
      value: fixture.openSeconds, notes: ["with \(fixture.devices) devices in the file"])
  }

  /// Closes the store and deletes its files.
  func remove() async {
    try? await loaded?.store.close()
    loaded = nil
    files = [:]
    if let directory { try? FileManager.default.removeItem(at: directory) }
  }

  /// The opened store with a million devices, or fewer for a quick run.
  func store(isQuick: Bool) async throws -> Loaded {
    if let loaded { return loaded }
    let devices = isQuick ? Self.quickDevices : Self.allDevices
    let path = try await file(devices: devices)
    let start = ContinuousClock.now
    let store = try await SQLiteHubStore.open(at: path, sealing: NoSealing())
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    guard let hub = try await store.hubs().first else { throw BenchmarkError("no hub in \(path)") }
    let result = Loaded(
      store: store, hub: hub.id, path: path, devices: devices, openSeconds: seconds)
    loaded = result
    return result
  }

  /// A closed database with this number of devices.
  func file(devices: Int) async throws -> String {
    if let path = files[devices] { return path }
    let directory =
      directory
      ?? FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    self.directory = directory
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let path = directory.appendingPathComponent("hub-\(devices).sqlite").path
    let store = try await SQLiteHubStore.open(at: path, sealing: NoSealing())
    let hub = try await store.createHub(
      named: Self.hubName, registrationTTL: nil, policies: [], at: Self.now)
    try await Self.put(0..<devices, to: store, hub: hub.id, callers: 512)
    try await store.close()
    files[devices] = path
    return path
  }

  /// Writes devices from several concurrent callers, each waiting for its commit.
  static func put(
    _ numbers: Range<Int>, to store: any InstallationStore, hub: Hub.ID, callers: Int
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for caller in 0..<callers {
        group.addTask {
          for number in stride(
            from: numbers.lowerBound + caller, to: numbers.upperBound, by: callers)
          {
            let device = device(number)
            // As the hub does; the body is not read here.
            let request = InstallationRequest(
              body: Array("\(number)".utf8), rules: [])
            let isRepeat = try await store.confirmInstallation(
              device.installationID, request: request, hub: hub, at: now)
            if isRepeat { continue }
            try await store.putInstallation(
              device, registrations: device.registrationDrafts, request: request, hub: hub,
              at: now)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  private static func device(_ number: Int) -> Installation {
    let token = token(number)
    return Installation(
      installationID: String(token.prefix(32)), userID: number % 4 == 0 ? "user\(number)" : nil,
      platform: .apns, pushChannel: .handle(token),
      tags: [
        number % 2 == 0 ? "even" : "odd", Tag(rawValue: "group\(number % 10)"),
        Tag(rawValue: "city\(number % 1000)"),
      ] + (number < 1000 ? [crew] : []),
      templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)])
  }

  /// 64 pseudorandom hexadecimal digits, the same in every run.
  private static func token(_ number: Int) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var state = UInt64(number)
    var text: [UInt8] = []
    text.reserveCapacity(64)
    for _ in 0..<4 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
      mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
      mixed ^= mixed >> 31
      for shift in stride(from: UInt64(60), through: 0, by: -4) {
        text.append(digits[Int((mixed >> shift) & 15)])
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// No sealing, since the benchmark has no secrets.
struct NoSealing: SecretSealing {
  func keys() -> [String] { [""] }
  func seal(_ plaintext: [UInt8], context: String, under key: String) -> [UInt8] { plaintext }
  func open(_ sealed: [UInt8], context: String) -> [UInt8] { sealed }
  func key(of sealed: [UInt8], context: String) -> String { "" }
  func head(of key: String) -> [UInt8] { [] }
}
