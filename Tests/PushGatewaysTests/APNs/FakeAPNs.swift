import Cryptography
import Foundation
import HTTP2
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Testing

@testable import PushGateways

/// A stand-in that does what a test's script says, over real TLS; the strict one is the emulator.
final class FakeAPNs: HTTP2ServerHandler {
  /// What happens to a request.
  enum Action: Sendable {
    case accept
    case refuse(Int, String, [(String, String)] = [])
    case reset(UInt32)
    /// GOAWAY with this last stream id and debug data; the request itself is not answered.
    case goAway(Int32, String)
    /// No answer.
    case ignore
  }

  /// A request as it came.
  struct Seen: Sendable {
    let connection: UInt64
    let stream: Int32
    let method: String
    let path: String
    let authority: String
    let fields: [String: String]
    let body: String
    /// SHA-1 of the client's certificate, in hexadecimal.
    let certificate: String?
    /// What the script decided.
    var isAccepted = false
  }

  typealias Script = @Sendable (Seen, HTTP2ServerConnection) -> Action

  private struct State {
    var seen: [Seen] = []
    var opened = 0
  }

  private let script: Script
  private let decision: HTTP2AcceptDecision
  private let state = Mutex(State())

  init(decision: HTTP2AcceptDecision = .proceed, script: @escaping Script) {
    self.decision = decision
    self.script = script
  }

  var seen: [Seen] { state.withLock { $0.seen } }
  var accepted: [Seen] { seen.filter(\.isAccepted) }
  /// TCP connections so far.
  var connects: Int { state.withLock { $0.opened } }
  var tokens: Set<String> { Set(seen.compactMap { $0.fields["authorization"] }) }

  func connectionAccepted(id: UInt64) -> HTTP2AcceptDecision {
    state.withLock { $0.opened += 1 }
    return decision
  }

  func received(_ request: HTTP2ServerRequest, on connection: HTTP2ServerConnection) {
    var seen = Seen(
      connection: connection.id, stream: request.stream, method: request.method,
      path: request.path, authority: request.authority,
      fields: Dictionary(request.fields.pairs.map { ($0.name, $0.value) }) { $0 + "|" + $1 },
      body: String(decoding: request.body, as: UTF8.self),
      certificate: connection.peerCertificate.map { Hex.encode(Digest.sha1($0.der)) })
    let action = script(seen, connection)
    if case .accept = action { seen.isAccepted = true }
    state.withLock { $0.seen.append(seen) }
    switch action {
    case .accept: connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
    case .refuse(let status, let reason, let headers):
      connection.respond(
        HTTP2ServerResponse(
          status: status, fields: HTTP2FieldList(headers.map { (name: $0.0, value: $0.1) }),
          body: Array((reason.hasPrefix("{") ? reason : #"{"reason":"\#(reason)"}"#).utf8)),
        to: request.stream)
    case .reset(let code): connection.reset(request.stream, code: code)
    case .goAway(let last, let reason):
      connection.goAway(
        lastStreamID: last, code: 0, debugData: Array(#"{"reason":"\#(reason)"}"#.utf8))
    case .ignore: break
    }
  }
}

/// Waits for something another thread does; fails after ten seconds.
func eventually(_ what: String, _ condition: () -> Bool) async throws {
  let limit = ContinuousClock.now + .seconds(10)
  while !condition() {
    try #require(ContinuousClock.now < limit, "waited in vain: \(what)")
    await Task.yield()
  }
}

/// A fake APNs that listens, and the gateways that trust it.
struct APNsBench: Sendable {
  let fake: FakeAPNs
  let server: HTTP2Server
  let gateways: APNsGateways
  let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))

  private static let authority = Result { try CertificateAuthority(commonName: "Fake APNs CA") }
  private static let identity = Result { try authority.get().issueForLocalhost() }

  init(
    streams: Int = 1000, clientAnchors: String = "", isTrusted: Bool = true,
    decision: HTTP2AcceptDecision = .proceed,
    configuration given: PushGatewaysConfiguration = PushGatewaysConfiguration(),
    script: @escaping FakeAPNs.Script = { _, _ in .accept }
  ) throws {
    let identity = try Self.identity.get()
    var server = HTTP2ServerConfiguration(
      host: "127.0.0.1", port: 0, certificatePEM: Array(identity.certificatePEM.utf8),
      keyPEM: Array(try identity.privateKeyPEM().utf8))
    server.maxConcurrentStreams = streams
    server.clientAnchorsPEM = Array(clientAnchors.utf8)
    fake = FakeAPNs(decision: decision, script: script)
    self.server = try HTTP2Server(server, handler: fake)
    var configuration = given
    if isTrusted {
      configuration.extraAnchorsPEM = Array(try Self.authority.get().certificate.pem.utf8)
    }
    gateways = APNsGateways(configuration, clock: clock.hubClock)
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
