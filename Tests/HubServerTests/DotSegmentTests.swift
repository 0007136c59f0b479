import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

/// URL layers turn `DELETE /hub/installations/..` into `DELETE /hub/`.
@Suite("Paths with '.' and '..'")
struct DotSegmentTests {
  static let listen = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)

  static let dots = [
    "..", ".", "%2e%2e", ".%2E", "%252e%252e", "%25%32%65", "..;a", "%2e%2e%3b", "..%5c", "..%2f..",
  ]

  @Test("are 400 for every method, and nothing is stored or deleted", arguments: dots)
  func refusal(id: String) async throws {
    let hub = try await TestHub()
    for path in ["installations/\(id)", "registrations/\(id)", "users/\(id)", "x/\(id)/messages"] {
      for method in [HTTPMethod.put, .get, .patch, .post, .delete] {
        let reply = await hub.send(
          method, "/hub1/\(path)?api-version=2020-06", headers: ["If-Match": "*"],
          body: HubAPITransportTests.installation)
        #expect(reply.status == .badRequest, "\(method.rawValue) \(path)")
        #expect(reply.message?.contains("'..'") == true)
      }
    }
    #expect(try await hub.store.hub(named: "hub1") != nil)
  }

  @Test(
    "a slash at the end deletes and changes no hub", arguments: ["/hub1/", "/hub1/?x", "/new/"])
  func trailingSlash(path: String) async throws {
    let hub = try await TestHub()
    for method in [HTTPMethod.delete, .put] {
      let headers: HTTPHeaders = path == "/new/" ? [:] : ["If-Match": "*"]
      let reply = await hub.send(
        method, path, headers: headers, body: ManagementTests.entry(""), token: ManagementTests.root
      )
      #expect(reply.status == .badRequest)
    }
    #expect(try await hub.store.hubs().map(\.name) == ["hub1"])
    #expect(await hub.send(.get, "/hub1/", token: ManagementTests.root).status == .ok)
    #expect(await hub.send(.delete, "/hub1", token: ManagementTests.root).status == .ok)
    #expect(try await hub.store.hubs().isEmpty)
  }

  @Test("an id that could become such a path is refused where it is made")
  func bodies() async throws {
    let hub = try await TestHub()
    for id in ["a%5Cb", "a%2F%2E%2E%2Fb", "%7F"] {
      let reply = await hub.send(
        .put, "/hub1/registrations/\(id)", body: RegistrationBody.apple(), token: Self.listen)
      #expect(reply.status == .badRequest, "\(id)")
    }
    let batch = await hub.send(
      .put, "/hub1/installations/i1", body: #"{"installationId":"..","platform":"apns"}"#)
    #expect(batch.status == .badRequest)
  }
}
