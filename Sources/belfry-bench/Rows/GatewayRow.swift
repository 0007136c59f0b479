import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushGateways
import Wire

/// CPU per push of the APNs gateway: the dispatcher's pushes become requests, pass through the
/// transport and return as results. One connection, a token credential, one body per page; the
/// server is a child process.
struct GatewayRow: BenchmarkRow {
  let name = "gateway.cpu_us_per_push"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(3.5)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let count = isQuick ? 20 : 200
    let sink = try TransportSinkProcess()
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = sink.authorityPEM
    configuration.apns.maxConnections = 1
    let credential = PushCredential(
      platform: .apns,
      properties: [
        "Token": try P256PrivateKey().pem(), "KeyId": "ABC123DEFG", "AppId": "DEF123GHIJ",
        "AppName": "com.example.app", "Endpoint": "https://127.0.0.1:\(sink.port)",
      ], modifiedAt: Date())
    let gateway = try APNsGateways(
      supplies: GatewaySupplies(configuration, clock: .system, random: .system)
    )
    .gateway(for: credential)
    let measurement = try await PageLoad.measure(gateway, pages: (0..<count).map(Self.page))
    _ = try sink.stop()
    return measurement
  }

  /// A page of pushes to unique tokens, in the hub's storage format.
  private static func page(_ number: Int) -> PushBatch {
    let body = PushBody(bytes: Array(#"{"aps":{"alert":"Hello from Postman!"}}"#.utf8))
    var batch = PushBatch(bodies: [body])
    batch.handles.reserveCapacity(PageLoad.pageSize * 64)
    for position in 0..<PageLoad.pageSize {
      let seed = Array("\(number)/\(position)".utf8)
      let start = batch.handles.count
      batch.handles += Hex.encode(Digest.sha256(seed)).uppercased().utf8
      batch.requests.append(
        PushRequest(
          id: PushID(high: UInt64(number), low: UInt64(position)),
          handle: start..<batch.handles.count, body: 0, confirmedAt: 0))
    }
    return batch
  }
}
