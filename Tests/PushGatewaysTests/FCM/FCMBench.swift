import Cryptography
import Foundation
import HTTP2
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Synchronization

@testable import PushGateways

/// A fake FCM over HTTP/2, a fake token service, and the gateways that trust both.
struct FCMBench: Sendable {
  let fake: FakePushService
  let server: HTTP2Server
  let tokens: FakeTokens
  let gateways: FCMGateways
  let clock: ManualClock
  let tokenURI: String

  var endpoint: String { "https://localhost:\(server.port)" }

  func gateway(_ changes: [String: String?] = [:]) throws -> FCMGateway {
    let places: [String: String?] = ["Endpoint": endpoint, "TokenUri": tokenURI]
    return try gateways.gateway(for: PushFixture.fcm(places.merging(changes) { $1 }))
  }

  static func handle(_ number: Int) -> String {
    "device\(String(number).count)\(number)aaaaaaaaaaaa:APA91b" + String(repeating: "x", count: 134)
  }

  static let body = PushBody(bytes: Array(#"{"message":{"data":{"a":"1"}}}"#.utf8))

  static func batch(_ count: Int, body: PushBody = body) -> PushBatch {
    var batch = PushBatch(bodies: [body])
    for number in 0..<count { batch.add(handle(number), id: UInt64(number)) }
    return batch
  }
}

/// Answers token requests with `token-1`, `token-2` and so on, or as told.
final class FakeTokens: Sendable {
  private struct State {
    var forms: [String] = []
    var refusal: (Int, String)?
  }
  private let state = Mutex(State())

  /// The forms that came.
  var forms: [String] { state.withLock { $0.forms } }

  func refuse(_ status: Int, _ body: String) { state.withLock { $0.refusal = (status, body) } }

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    state.withLock { state in
      state.forms.append(String(decoding: request.body, as: UTF8.self))
      if let (status, body) = state.refusal {
        return HTTPResponse(HTTPStatus(rawValue: status), body: .bytes(Array(body.utf8)))
      }
      let token = "token-\(state.forms.count)"
      let body = #"{"access_token":"\#(token)","expires_in":3599,"token_type":"Bearer"}"#
      return HTTPResponse(200, body: .bytes(Array(body.utf8)))
    }
  }
}

/// Runs `body` with a fake FCM that answers as the script says.
func withFCM(
  script: @escaping FakePushService.Script = { _, _ in .accept },
  body: (FCMBench) async throws -> Void
) async throws {
  let tokens = FakeTokens()
  try await withSecureServer { request in
    tokens.answer(request)
  } body: { tokenServer in
    let authority = try CertificateAuthority(commonName: "Fake FCM CA")
    let identity = try authority.issueForLocalhost()
    let fake = FakePushService(script: script)
    let server = try HTTP2Server(
      HTTP2ServerConfiguration(
        host: "127.0.0.1", port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
        keyPEM: Array(try identity.privateKeyPEM().utf8)), handler: fake)
    let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = Array(authority.certificate.pem.utf8) + tokenServer.anchors
    try await body(
      FCMBench(
        fake: fake, server: server, tokens: tokens,
        gateways: FCMGateways(
          supplies: GatewaySupplies(configuration, clock: clock.hubClock, random: .system)),
        clock: clock,
        tokenURI: tokenServer.url("/token")))
  }
}
