import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// Plays a recorded scenario over a socket and compares every reply with the recorded one.
struct RecordingReplay {
  struct Scenario: CustomTestStringConvertible {
    let file: String
    /// Those after the clean-up.
    let requests: [Request]
    var testDescription: String { file }
  }

  struct Request {
    var method: String
    var headers: [String: String] = [:]
    var body = ""
    var usesListenKey = false
    /// Why the body of the recorded reply is not what the service answers (docs/recordings.md).
    var unlike: String?
  }

  private let client: SocketClient
  private let hub: TestHub
  /// Our ids and tokens, by recorded ones.
  private var ours: [String: String] = [:]

  /// - Parameter wire: What the client speaks; `nil` for HTTP/1.1 by URLSession.
  static func run(_ scenario: Scenario, on hub: TestHub, over wire: Wire? = nil) async throws {
    let server = try wire.map { try WireServer($0, HubAPIConfiguration.listener, handler: hub.api) }
    let listener =
      try server?.listener ?? HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
    var replay = RecordingReplay(
      client: SocketClient(port: listener.port, wire: server), hub: hub)
    let calls = try Recording(named: scenario.file).calls
    let cleaning = try await replay.seed(calls[0])
    try #require(calls.count == cleaning.count + scenario.requests.count)
    for (call, request) in zip(calls, cleaning + scenario.requests) {
      try await replay.send(request, as: call)
    }
    if let server { await server.stop() } else { await listener.stop() }
  }

  private init(client: SocketClient, hub: TestHub) {
    self.client = client
    self.hub = hub
  }

  private mutating func send(_ request: Request, as call: Recording.Call) async throws {
    var path = call.path
    for (recorded, own) in ours { path = path.replacing(recorded, with: own) }
    var headers = request.headers
    if request.usesListenKey {
      headers[WireName.authorization] = TestHub.token(
        resource: client.base + "/", name: TestHub.listenName,
        key: TestHub.listenKey)
    }
    let id = path.prefix { $0 != "?" }.split(separator: "/").last ?? ""
    let reply = try await client.send(
      request.method, path, headers: headers,
      body: request.body.replacing("\"ID\"", with: "\"\(id)\""))
    compare(reply, with: call, isBodyCompared: request.unlike == nil)
    learn(from: reply, call)
  }

  private func compare(
    _ reply: SocketClient.Reply, with call: Recording.Call, isBodyCompared: Bool
  ) {
    #expect(reply.status == call.status)
    #expect(reply.headers["content-type"] == call.contentHeaders["Content-Type"])
    // HTTP/2 leaves it out of a 204 (RFC 9110, section 8.6).
    if let length = call.contentHeaders["Content-Length"],
      call.status != 204 || client.wire?.wire != .http2
    {
      #expect(reply.headers["content-length"] == length)
    }
    for name in ["TrackingId", "x-ms-correlation-request-id"] where call.headers[name] != nil {
      #expect(reply.headers[name.lowercased()] != nil)
    }
    let token = "x-ms-continuationtoken"
    #expect((reply.headers[token] == nil) == (call.headers[token] == nil))
    guard isBodyCompared else { return }
    #expect(reply.headers["etag"] == call.headers["ETag"])
    for (own, recorded) in [
      ("location", call.headers["Location"]),
      ("content-location", call.contentHeaders["Content-Location"]),
    ] {
      #expect(
        reply.headers[own].map(Recording.normalized) == recorded.map(Recording.normalized))
    }
    #expect(Recording.normalized(reply.body) == Recording.normalized(call.content ?? ""))
  }

  /// Notes which of our ids and tokens stand for the recorded ones.
  private mutating func learn(from reply: SocketClient.Reply, _ call: Recording.Call) {
    let token = "x-ms-continuationtoken"
    if let recorded = call.headers[token] { ours[recorded] = reply.headers[token] }
    if let recorded = Self.registrations(in: call.content).first, recorded.isAlone {
      ours[recorded.registration.registrationID ?? ""] =
        Self.registrations(in: reply.body).first?.registration.registrationID
    }
    // Of an installation; the others were seeded under their own ids.
    var own = Self.registrations(in: reply.body).map(\.registration)
    for recorded in Self.registrations(in: call.content).map(\.registration)
    where recorded.isFromInstallation {
      guard
        let index = own.firstIndex(where: { $0.kind == recorded.kind && $0.tags == recorded.tags })
      else { continue }
      ours[recorded.registrationID ?? ""] = own.remove(at: index).registrationID
    }
  }

  private static func registrations(
    in document: String?
  ) -> [(registration: Registration, isAlone: Bool)] {
    guard let bytes = document.map({ Array($0.utf8) }), !bytes.isEmpty else { return [] }
    if let page = try? Registration.decodeFeed(bytes) { return page.map { ($0, false) } }
    return (try? Registration.decode(bytes)).map { [($0, true)] } ?? []
  }

  // MARK: What another scenario has left

  /// Makes the registrations that the first reply shows, and says which requests remove them.
  private func seed(_ call: Recording.Call) async throws -> [Request] {
    guard call.path.contains("/registrations?"), call.content?.hasPrefix("<feed") == true else {
      return []
    }
    let registrations = Self.registrations(in: call.content).map(\.registration)
    let name = try #require(call.path.split(separator: "/").first.map(String.init))
    let hub = try #require(try await self.hub.store.hub(named: name))
    for registration in registrations where !registration.isFromInstallation {
      for _ in 0..<(Int(registration.etag ?? "") ?? 1) {
        _ = try await self.hub.service.registrations.put(
          hub: hub, id: registration.registrationID ?? "", condition: .none, registration)
      }
    }
    let derived = registrations.filter(\.isFromInstallation)
    for (tag, members) in Dictionary(grouping: derived, by: { $0.tags[0] }) {
      let id = tag.rawValue.split(separator: "{")[1].dropLast()
      try await seed(Self.installation(String(id), members), etag: members[0].etag, hub.id)
    }
    let delete = Request(method: "DELETE", headers: ["If-Match": "*"])
    return [Request(method: "GET")] + registrations.map { _ in delete }
  }

  private func seed(_ installation: Installation, etag: String?, _ hub: Hub.ID) async throws {
    try await self.hub.store.putInstallation(
      installation, registrations: installation.registrationDrafts, request: nil, hub: hub,
      at: TestHub.now)
    guard etag == "2" else { return }
    _ = try await self.hub.store.updateInstallation(
      installation.installationID, hub: hub, at: TestHub.now
    ) { ($0, $0.registrationDrafts) }
  }

  private static func installation(_ id: String, _ members: [Registration]) -> Installation {
    var installation = Installation(
      installationID: id, platform: members[0].platform, pushChannel: members[0].channel,
      pushVariables: members[0].pushVariables)
    for member in members {
      if case .template(let template, let name) = member.kind {
        installation.templates[name ?? ""] = template
      } else {
        installation.tags = member.tags.filter { !$0.isImplicit }
      }
    }
    return installation
  }
}
