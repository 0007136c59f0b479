import Cryptography
import Foundation
import HTTPServer
import HubCore
import NotificationHubs
import PushGateways
import Wire

/// CPU per push of the FCM gateway: the sender's message, split once per page, with each device's
/// token inserted, over one connection.
struct FCMRow: BenchmarkRow {
  let name = "fcm.cpu_us_per_push"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(5)

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let sink = try TransportSinkProcess()
    let authority = try CertificateAuthority(commonName: "belfry-bench tokens")
    let tokens = try Self.tokenService(authority)
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM =
      sink.authorityPEM + Array(authority.certificate.pem.utf8)
    configuration.fcm.connections.maxConnections = 1
    // Measures the hub's own work, not the vendor's rate limit.
    configuration.fcm.messagesPerMinute = nil
    let credential = PushCredential(
      platform: .fcmv1,
      properties: [
        "ProjectId": "bench", "ClientEmail": "bench@bench.iam.gserviceaccount.com",
        "PrivateKey": try RSAPrivateKey().pem(), "Endpoint": "https://127.0.0.1:\(sink.port)",
        "TokenUri": "https://localhost:\(tokens.port)/token",
      ], modifiedAt: Date())
    let gateway = try FCMGateways(
      supplies: GatewaySupplies(configuration, clock: .system, random: .system)
    ).gateway(
      for: credential)
    let measurement = try await PageLoad.measure(
      gateway, pages: (0..<(isQuick ? 20 : 200)).map(Self.page))
    await tokens.stop(within: .seconds(1))
    _ = try sink.stop()
    return measurement
  }

  /// A token service that issues a token of the length of Google's.
  private static func tokenService(_ authority: CertificateAuthority) throws -> HTTPListener {
    let identity = try authority.issueForLocalhost()
    var configuration = HTTPConfiguration()
    configuration.tls = TLSIdentity(
      certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM())
    return try HTTPListener(configuration, handler: TokenService())
  }

  private struct TokenService: HTTPHandler {
    func respond(to request: HTTPRequest) async -> HTTPResponse {
      let token = "ya29." + String(repeating: "c", count: 1000)
      return HTTPResponse(
        200, body: .bytes(Array(#"{"access_token":"\#(token)","expires_in":3599}"#.utf8)))
    }
  }

  private static func page(_ number: Int) -> PushBatch {
    let body = PushBody(
      bytes: Array(#"{"message":{"notification":{"title":"Hello from Postman!"}}}"#.utf8))
    var batch = PushBatch(bodies: [body])
    for position in 0..<PageLoad.pageSize {
      let device = Hex.encode(Digest.sha256(Array("\(number)/\(position)".utf8)))
      let start = batch.handles.count
      batch.handles += "\(device.prefix(22)):APA91b\(device)\(device)000000".utf8
      batch.requests.append(
        PushRequest(
          id: PushID(high: UInt64(number), low: UInt64(position)),
          handle: start..<batch.handles.count, body: 0, confirmedAt: 0))
    }
    return batch
  }
}
