import Cryptography
import Foundation
import HTTP2
import HubCore
import HubTesting
import NotificationHubs
import Wire

@testable import PushGateways

/// A browser that has subscribed.
struct FakeBrowser: Sendable {
  let key: P256PrivateKey
  let secret: [UInt8]
  let endpoint: String

  init(endpoint: String) throws {
    key = try P256PrivateKey()
    secret = try SecureRandom.bytes(16)
    self.endpoint = endpoint
  }

  /// As the hub stores it.
  var handle: String {
    get throws {
      let point = Base64URL.encode(try key.publicKey().point)
      return "\(endpoint)\n\(point)\n\(Base64URL.encode(secret))"
    }
  }

  func open(_ body: [UInt8]) throws -> String {
    String(
      decoding: try WebPushDecryption.open(body, key: key, secret: secret), as: UTF8.self)
  }
}

/// A fake push service over HTTP/2 at localhost, and the gateways that trust and allow it.
struct WebPushBench: Sendable {
  let fake: FakePushService
  let server: HTTP2Server
  let gateways: WebPushGateways
  let configuration: PushGatewaysConfiguration
  let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))

  static let body = PushBody(bytes: Array(#"{"title":"hi"}"#.utf8))

  private static let authority = Result { try CertificateAuthority(commonName: "Fake push CA") }
  private static let identity = Result { try authority.get().issueForLocalhost() }

  init(
    allowing hosts: [String] = ["localhost"], maxOrigins: Int = 64,
    script: @escaping FakePushService.Script = { _, _ in .status(201) }
  ) throws {
    let identity = try Self.identity.get()
    fake = FakePushService(script: script)
    server = try HTTP2Server(
      HTTP2ServerConfiguration(
        host: "127.0.0.1", port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
        keyPEM: Array(try identity.privateKeyPEM().utf8)), handler: fake)
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = Array(try Self.authority.get().certificate.pem.utf8)
    configuration.allowedHosts = hosts
    configuration.webPush.maxOrigins = maxOrigins
    self.configuration = configuration
    gateways = WebPushGateways(
      supplies: GatewaySupplies(configuration, clock: clock.hubClock, random: .system))
  }

  var origin: String { "https://localhost:\(server.port)" }

  func gateway() throws -> WebPushGateway { try gateways.gateway(for: PushFixture.webPush()) }

  func browsers(_ count: Int) throws -> [FakeBrowser] {
    try (0..<count).map { try FakeBrowser(endpoint: "\(origin)/wp/\($0)") }
  }

  static func batch(_ browsers: [FakeBrowser], body: PushBody = body) throws -> PushBatch {
    try batch(handles: browsers.map { try $0.handle }, body: body)
  }

  static func batch(handles: [String], body: PushBody = body) -> PushBatch {
    var batch = PushBatch(bodies: [body])
    for handle in handles { batch.add(handle) }
    return batch
  }
}
