import Cryptography
import Foundation
import HubCore
import NotificationHubs
import PushGateways
import Wire

/// CPU per push of the Web Push gateway, including the encryption for each device, which dominates:
/// two multiplications on the curve P-256.
struct WebPushRow: BenchmarkRow {
  let name = "webpush.cpu_us_per_push"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(80)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let sink = try TransportSinkProcess()
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = sink.authorityPEM
    configuration.allowedHosts = ["127.0.0.1"]
    configuration.webPush.connections.maxConnections = 1
    let key = try P256PrivateKey()
    let credential = PushCredential(
      platform: .browser,
      properties: [
        "VapidPublicKey": Base64URL.encode(try key.publicKey().point),
        "VapidPrivateKey": try key.pem(), "Subject": "mailto:ops@example.com",
      ], modifiedAt: Date())
    let gateway = try WebPushGateways(
      supplies: GatewaySupplies(configuration, clock: .system, random: .system)
    )
    .gateway(for: credential)
    let browsers = try (0..<64).map { _ in
      let secret = Base64URL.encode(try SecureRandom.bytes(16))
      return "\(Base64URL.encode(try P256PrivateKey().publicKey().point))\n\(secret)"
    }
    let pages = (0..<(isQuick ? 4 : 40)).map { Self.page($0, port: sink.port, browsers) }
    let measurement = try await PageLoad.measure(gateway, pages: pages)
    _ = try sink.stop()
    return measurement
  }

  private static func page(_ number: Int, port: UInt16, _ browsers: [String]) -> PushBatch {
    let body = PushBody(bytes: Array(#"{"title":"Hello from Postman!","body":"…"}"#.utf8))
    var batch = PushBatch(bodies: [body])
    for position in 0..<PageLoad.pageSize {
      let device = Hex.encode(Digest.sha256(Array("\(number)/\(position)".utf8)))
      let start = batch.handles.count
      batch.handles += "https://127.0.0.1:\(port)/wp/\(device)\n".utf8
      batch.handles += browsers[position % browsers.count].utf8
      batch.requests.append(
        PushRequest(
          id: PushID(high: UInt64(number), low: UInt64(position)),
          handle: start..<batch.handles.count, body: 0, confirmedAt: 0))
    }
    return batch
  }
}
