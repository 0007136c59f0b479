import Cryptography
import Foundation
import HTTP2
import Synchronization
import Testing
import Wire

@testable import PushGateways

/// A stand-in over HTTP/2 that does what a test's script says, over real TLS; the strict one is the
/// emulator.
final class FakePushService: HTTP2ServerHandler {
  /// What happens to a request.
  enum Action: Sendable {
    case accept
    /// This status without a body.
    case status(Int)
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
    let bytes: [UInt8]
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
      body: String(decoding: request.body, as: UTF8.self), bytes: Array(request.body),
      certificate: connection.peerCertificate.map { Hex.encode(Digest.sha1($0.der)) })
    let action = script(seen, connection)
    if case .accept = action { seen.isAccepted = true }
    state.withLock { $0.seen.append(seen) }
    switch action {
    case .accept: connection.respond(HTTP2ServerResponse(status: 200), to: request.stream)
    case .status(let status):
      connection.respond(HTTP2ServerResponse(status: status), to: request.stream)
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

/// Waits for something another thread does; fails after four minutes.
func eventually(_ what: String, _ condition: () -> Bool) async throws {
  let limit = ContinuousClock.now + .seconds(240)
  while !condition() {
    try #require(ContinuousClock.now < limit, "waited in vain: \(what)")
    try await Task.sleep(for: .milliseconds(1))
  }
}
