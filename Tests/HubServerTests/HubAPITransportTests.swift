import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

@Suite("Transport rules of the REST API")
struct HubAPITransportTests {
  static let installation =
    #"{"installationId":"i1","platform":"apns","pushChannel":"0A1B","tags":["12345"]}"#
  static let path = "/hub1/installations/i1"

  @Test(
    "paths match in any case, with a trailing slash, versions and unknown parameters",
    arguments: [
      "/hub1/installations/i1", "/HUB1/Installations/i1/", "/hub1/INSTALLATIONS/i1?test",
      "/hub1/installations/i1/?api-version=2015-01", "/hub1/installations/i1?API-Version=2020-06",
      "/hub1/installations/i1?x=%zz&api%2Dversion=2013-04&direct", "/hub1/installations/%691",
    ])
  func paths(target: String) async throws {
    let hub = try await TestHub()
    #expect(await hub.send(.put, target, body: Self.installation).status == .ok)
    #expect(await hub.send(.get, Self.path).status == .ok)
  }

  @Test("an empty reply has the recorded headers and no body")
  func emptyReply() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.put, Self.path, body: Self.installation)
    #expect(reply.status == .ok)
    #expect(reply.text == "")
    #expect(reply.headers["Content-Type"] == "application/xml; charset=utf-8")
    #expect(reply.headers["Server"] == "Belfry")
    #expect(UUID(uuidString: reply.headers["TrackingId"] ?? "") != nil)
    #expect(UUID(uuidString: reply.headers["x-ms-correlation-request-id"] ?? "") != nil)
  }

  @Test(
    "a Content-Type is never a reason to refuse",
    arguments: ["application/json;charset=utf-8.", "text/plain", "", "application/xml"])
  func contentTypes(type: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      .put, Self.path, headers: ["Content-Type": type], body: Self.installation)
    #expect(reply.status == .ok)
  }

  @Test("a client's tracking id comes back, in the header and in the error")
  func trackingID() async throws {
    let hub = try await TestHub()
    let id = "5B9D2F3C-1111-2222-3333-444455556666"
    let reply = await hub.send(.get, Self.path, headers: ["trackingid": id])
    #expect(reply.status == .notFound)
    #expect(reply.headers["TrackingId"] == id)
    #expect(
      reply.text
        == "<Error><Code>404</Code><Detail>Installation not found.TrackingId:\(id)_G0,"
        + "TimeStamp:1/5/2030 10:00:00 AM</Detail></Error>")
  }

  @Test("a tracking id that is none is replaced", arguments: ["<x>", "1", ""])
  func badTrackingID(id: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, Self.path, headers: ["TrackingId": id])
    #expect(UUID(uuidString: reply.headers["TrackingId"] ?? "") != nil)
    #expect(!reply.text.contains("<x>"))
  }

  @Test(
    "an unknown api-version is 400 and lists the known ones", arguments: ["2099-01", "", "%zz"])
  func apiVersion(version: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, "\(Self.path)?api-version=\(version)")
    #expect(reply.status == .badRequest)
    let shown = version == "%zz" ? "" : version
    #expect(
      reply.message
        == "The api-version '\(shown)' in the query string is not supported. Either remove it "
        + "from the Uri or use one of '2013-04,2013-08,2013-10,2014-09,2015-01,2015-04,2015-08,"
        + "2016-07,2017-04,2020-06'.")
  }

  @Test("every version in the list is served", arguments: APIVersionTable.all)
  func knownVersions(version: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      .put, "\(Self.path)?api-version=\(version)", body: Self.installation)
    #expect(reply.status == .ok)
  }

  static let refusedMethods: [(HTTPMethod, String, String)] = [
    (.post, "/hub1/installations/i1", "PUT, GET, PATCH, DELETE"),
    (.patch, "/hub1/messages", "POST, GET"), (.delete, "/hub1/messages/", "POST, GET"),
    (.put, "/hub1/messages/7", "GET, DELETE"),
    ("BREW", "/hub1/installations/i1", "PUT, GET, PATCH, DELETE"),
  ]

  @Test("another method on a known path is 405 with the right ones", arguments: refusedMethods)
  func methods(method: HTTPMethod, path: String, allowed: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(method, path)
    #expect(reply.status == .methodNotAllowed)
    #expect(reply.headers["Allow"] == allowed)
    #expect(reply.message != nil)
  }

  @Test(
    "an unknown resource is 404",
    arguments: ["/hub1/nothing", "/hub1/users", "/hub1/installations/a/b"])
  func unknownResources(path: String) async throws {
    let hub = try await TestHub()
    #expect(await hub.send(.get, path).status == .notFound)
  }

  @Test("a hub's name may have dots, dashes, underscores and slashes")
  func hubNames() async throws {
    for name in ["My.Hub-1_x", "team/app"] {
      let hub = try await TestHub(hubs: [name])
      let token = TestHub.token(resource: "https://\(TestHub.host)/")
      let reply = await hub.send(
        .put, "/\(name.lowercased())/installations/i1", body: Self.installation, token: token)
      #expect(reply.status == .ok)
    }
  }

  @Test("an id in the path that is no text is 400", arguments: ["%zz", "%ff", "a%00b"])
  func badID(id: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, "/hub1/installations/\(id)")
    #expect(reply.status == .badRequest)
  }

  @Test("health answers without a token, and nothing but reading")
  func health() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, "/$health", token: nil)
    #expect(reply.status == .ok)
    #expect(reply.text == "ok\n")
    #expect(await hub.send(.head, "/%24health", token: nil).status == .ok)
    #expect(await hub.send(.post, "/$health", token: nil).status == .methodNotAllowed)
  }

  @Test("the server's own refusals have the form of all errors", arguments: [400, 413, 431, 503])
  func ownRefusals(status: Int) async throws {
    let hub = try await TestHub()
    let reply = hub.api.reject(
      HTTPStatus(rawValue: status), request: HTTPRequest(method: .put, target: "/hub1"))
    #expect(reply.status.rawValue == status)
    #expect(reply.text.hasPrefix("<Error><Code>\(status)</Code><Detail>"))
    #expect(reply.headers["Content-Type"] == "application/xml; charset=utf-8")
  }

  @Test("the refusal of a body names the limit that is set")
  func bodyLimit() async throws {
    var configuration = HubAPIConfiguration()
    configuration.maxBodyBytes = 4096
    let hub = try await TestHub(configuration: configuration)
    let request = HTTPRequest(method: .put, target: "/hub1")
    #expect(hub.api.reject(.contentTooLarge, request: request).text.contains("of 4096 bytes"))
  }

  @Test("a store that fails is 503 and says nothing of the request")
  func storeFailure() async throws {
    let hook = StoreHook()
    let hub = try await TestHub(store: try await temporaryStore(hook))
    #expect(await hub.send(.put, Self.path, body: Self.installation).status == .ok)
    hook.fail(with: .diskFull)
    let reply = await hub.send(.put, Self.path, body: Self.installation)
    #expect(reply.status == .serviceUnavailable)
    #expect(!reply.text.contains("0A1B"))
  }
}

/// The versions of docs/protocol/rest.md, section 1.2, spelled once more.
enum APIVersionTable {
  static let all = [
    "2013-04", "2013-08", "2013-10", "2014-09", "2015-01", "2015-04", "2015-08", "2016-07",
    "2017-04", "2020-06",
  ]
}
