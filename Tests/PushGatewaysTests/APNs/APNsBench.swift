import Cryptography
import Foundation
import HTTP2
import HubCore
import HubTesting
import NotificationHubs

@testable import PushGateways

/// A fake APNs that listens, and the gateways that trust it.
struct APNsBench: Sendable {
  let fake: FakePushService
  let server: HTTP2Server
  let gateways: APNsGateways
  let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))

  private static let authority = Result { try CertificateAuthority(commonName: "Fake APNs CA") }
  private static let identity = Result { try authority.get().issueForLocalhost() }

  init(
    streams: Int = 1000, clientAnchors: String = "", isTrusted: Bool = true,
    decision: HTTP2AcceptDecision = .proceed,
    configuration given: PushGatewaysConfiguration = PushGatewaysConfiguration.forStandIns,
    script: @escaping FakePushService.Script = { _, _ in .accept }
  ) throws {
    let identity = try Self.identity.get()
    var server = HTTP2ServerConfiguration(
      host: "127.0.0.1", port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
      keyPEM: Array(try identity.privateKeyPEM().utf8))
    server.maxConcurrentStreams = streams
    server.clientAnchorsPEM = Array(clientAnchors.utf8)
    fake = FakePushService(decision: decision, script: script)
    self.server = try HTTP2Server(server, handler: fake)
    var configuration = given
    configuration.serviceHosts.append("nowhere.invalid")
    if isTrusted {
      configuration.extraAnchorsPEM = Array(try Self.authority.get().certificate.pem.utf8)
    }
    gateways = APNsGateways(
      supplies: GatewaySupplies(configuration, clock: clock.hubClock, random: .system))
  }

  var endpoint: String { "https://localhost:\(server.port)" }

  func tokenGateway(_ changes: [String: String?] = [:]) throws -> APNsGateway {
    try gateways.gateway(
      for: APNsFixture.tokenCredential(["Endpoint": endpoint].merging(changes) { $1 }))
  }

  func certificateGateway(_ archive: APNsFixture.Archive) throws -> APNsGateway {
    try gateways.gateway(for: APNsFixture.certificateCredential(archive, ["Endpoint": endpoint]))
  }
}

extension PushBatch {
  /// Pushes to the tokens 1, 2, 3 … in upper case, as the hub stores them, all with one body.
  static func alerts(
    _ count: Int, from first: Int = 1,
    body: PushBody = PushBody(bytes: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
  ) -> PushBatch {
    var batch = PushBatch(bodies: [body])
    for number in first..<(first + count) {
      batch.add(token(number).uppercased(), id: UInt64(number))
    }
    return batch
  }

  /// The token with this number, in lower case.
  static func token(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return "abcdef" + String(repeating: "0", count: 58 - digits.count) + digits
  }

  mutating func add(_ handle: String, id: UInt64 = 0, body: Int32 = 0, confirmedAt: Int64 = 0) {
    let start = handles.count
    handles += handle.utf8
    requests.append(
      PushRequest(
        id: PushID(high: 0xDEAD_BEEF_CAFE_F00D, low: id), handle: start..<handles.count,
        body: body, confirmedAt: confirmedAt))
  }
}
