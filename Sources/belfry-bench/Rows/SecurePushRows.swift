import Cryptography
import Foundation
import HTTPServer
import NotificationHubs
import SQLDatabase
import SecurePush
import SecurePushBackend
import Wire

/// Sealing a payload for one device.
struct SealRow: BenchmarkRow {
  let name = "secure.seal_us"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(150)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let recipient = SealingRecipient(
      installationID: "phone", publicKey: try SealingKey().publicKey)
    let payload = Data(repeating: 7, count: 1_000)
    let count = isQuick ? 1_000 : 20_000
    let before = ProcessUsage.current().cpuSeconds
    for number in 0..<count {
      _ = try SecurePush.seal(payload, id: "message-\(number)", for: recipient)
    }
    let cpu = ProcessUsage.current().cpuSeconds - before
    return BenchmarkMeasurement(
      value: cpu / Double(count) * 1e6, notes: ["\(count) payloads of 1000 bytes, one core"])
  }
}

/// Fetches the user's own payload from the app backend: sign-in, database, audit line on disk; 64
/// concurrent readers. Excludes the cost of HTTP, for which see put_installation.per_s.
struct SecureFetchRow: BenchmarkRow {
  let name = "backend.fetch_per_s"
  let unit = "1/s"
  let goal = BenchmarkGoal.atLeast(2_000)

  /// A hub that accepts every send.
  private struct AnyHub: HTTPTransport {
    func send(_ request: TransportRequest) async throws -> TransportReply {
      TransportReply(status: 201, headers: ["Location": "https://hub.example/hub/messages/1"])
    }
  }

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let directory = FileManager.default.temporaryDirectory
      .appendingPathComponent("belfry-bench-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let path = directory.appendingPathComponent("backend.sqlite").path
    let store = try await BackendStore(key: MasterKey()) { try SQLiteConnection(path: path) }
    let hub = NotificationHubClient(
      connectionString: ConnectionString(
        endpoint: ServiceEndpoint(host: "hub.example"), keyName: "Full", key: "AAAA"),
      hub: "hub", transport: AnyHub(), retry: .none)
    let backend = BackendAPI(hub: hub, store: store, signIn: SignIn(passwords: DemoUsers()))
    let authorization = "Basic " + Base64.encode(Array("alice:alice".utf8))
    func ask(_ method: HTTPMethod, _ path: String) async throws -> HTTPResponse {
      let response = await backend.respond(
        to: HTTPRequest(
          method: method, target: HTTPTarget(path), headers: ["Authorization": authorization],
          remoteAddress: "192.0.2.1"))
      guard response.status == 200 else {
        throw BenchmarkError("\(method.rawValue) \(path) gave \(response.status.rawValue)")
      }
      return response
    }
    let made = try await ask(.post, "/api/notifications")
    guard case .bytes(let body) = made.body,
      case .string(let id)? = (try? JSONValue.parse(body))?["id"]
    else { throw BenchmarkError("the backend gave no id") }
    let count = isQuick ? 2_000 : 20_000
    let before = ProcessUsage.current().cpuSeconds
    let start = ContinuousClock.now
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<64 {
        group.addTask {
          for _ in 0..<(count / 64) { _ = try await ask(.get, "/api/notifications/\(id)") }
        }
      }
      try await group.waitForAll()
    }
    let seconds = (ContinuousClock.now - start) / .seconds(1)
    let cpu = ProcessUsage.current().cpuSeconds - before
    await store.close()
    let fetches = count / 64 * 64
    return BenchmarkMeasurement(
      value: (Double(fetches) / seconds).rounded(),
      notes: ["\(fetches) fetches, \((cpu / Double(fetches) * 1e6).shortest) µs CPU each"])
  }
}
