import Foundation
import HTTPClient
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Wire

@testable import PushGateways

/// A push service with its token service, over real TLS: answers what a test tells it to and keeps
/// what it was asked.
final class FakeService: Sendable {
  struct Asked: Sendable {
    let path: String
    let headers: [String: String]
    let body: String

    /// A form's fields.
    var form: [String: String] {
      var fields: [String: String] = [:]
      for pair in body.split(separator: "&") {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        fields[String(parts[0])] = parts[1].replacingOccurrences(of: "+", with: " ").percentDecoded
      }
      return fields
    }
  }

  typealias Answer = @Sendable (Asked) async -> HTTPResponse

  private struct State {
    var pushes: [Asked] = []
    var tokens: [Asked] = []
    var inFlight = 0
    var most = 0
  }

  private let state = Mutex(State())
  private let token: @Sendable (Int) -> HTTPResponse
  private let push: Answer

  /// - Parameter token: Answers the n-th question for a token, from 1.
  init(token: @escaping @Sendable (Int) -> HTTPResponse, push: @escaping Answer) {
    self.token = token
    self.push = push
  }

  /// All pushes asked for, in their order.
  var pushes: [Asked] { state.withLock { $0.pushes } }
  var tokens: [Asked] { state.withLock { $0.tokens } }
  /// The most pushes that were under way at once.
  var most: Int { state.withLock { $0.most } }

  @Sendable func answer(_ request: HTTPRequest) async -> HTTPResponse {
    var headers: [String: String] = [:]
    for (name, value) in request.headers { headers[name.lowercased()] = value }
    let asked = Asked(
      path: request.target.description, headers: headers,
      body: String(decoding: request.body, as: UTF8.self))
    if asked.path.hasPrefix("/token") {
      return token(
        state.withLock { state in
          state.tokens.append(asked)
          return state.tokens.count
        })
    }
    state.withLock { state in
      state.pushes.append(asked)
      state.inFlight += 1
      state.most = max(state.most, state.inFlight)
    }
    defer { state.withLock { $0.inFlight -= 1 } }
    return await push(asked)
  }

  static func token(_ number: Int) -> HTTPResponse {
    json(200, #"{"access_token":"token\#(number)","token_type":"bearer","expires_in":3600}"#)
  }

  static func json(_ status: Int, _ text: String) -> HTTPResponse {
    HTTPResponse(
      HTTPStatus(rawValue: status), headers: ["Content-Type": "application/json"],
      body: .bytes(Array(text.utf8)))
  }
}

/// A gateway made as the hub makes it, and the service it talks to.
struct GatewayRoom: Sendable {
  let server: SecureServer
  let service: FakeService
  let clock: ManualClock
  let gateway: any PushGateway

  /// Sends one body to handles.
  func send(_ body: PushBody, to handles: [String]) async -> [PushResult] {
    var batch = PushBatch(bodies: [body])
    for (index, handle) in handles.enumerated() {
      let start = batch.handles.count
      batch.handles += Array(handle.utf8)
      batch.requests.append(
        PushRequest(
          id: PushID(high: 7, low: UInt64(index)), handle: start..<batch.handles.count, body: 0,
          confirmedAt: 0))
    }
    return await gateway.deliver(batch)
  }
}

/// - Parameters:
///   - connections: The most at a time, where it is not the usual number.
///   - hosts: That channels may name beside the server's.
///   - tokenReply: What the token service always answers; a good token when `nil`.
///   - properties: The credential's.
func withGateway(
  _ platform: PushPlatform, connections: Int? = nil, hosts: [String] = [],
  tokenReply: HTTPResponse? = nil, _ properties: (SecureServer) -> [String: String],
  push: @escaping FakeService.Answer, body: (GatewayRoom) async throws -> Void
) async throws {
  let service = FakeService(token: { tokenReply ?? FakeService.token($0) }, push: push)
  try await withSecureServer(answer: service.answer) { server in
    var configuration = PushGatewaysConfiguration.forStandIns
    configuration.extraAnchorsPEM = server.anchors
    configuration.allowedHosts = ["localhost", "127.0.0.1"] + hosts
    configuration.connections = connections
    let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))
    let directory = PushGatewayDirectory(configuration, clock: clock.hubClock, random: .system)
    let credential = PushCredential(
      platform: platform, properties: properties(server), modifiedAt: clock.now)
    guard let gateway = try await directory.gateway(for: credential, hub: 1) else { return }
    try await body(
      GatewayRoom(server: server, service: service, clock: clock, gateway: gateway))
  }
}
