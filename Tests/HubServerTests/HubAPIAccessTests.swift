import Foundation
import HTTPServer
import HubCore
import HubServer
import NotificationHubs
import Testing

@Suite("Access to the REST API")
struct HubAPIAccessTests {
  static let path = "/hub1/installations/i1"

  static let badTokens: [(String?, String)] = [
    (nil, "MissingToken: The authorization header was not found."),
    (
      "Bearer abc",
      "MalformedToken: The credentials contained in the authorization header are not in the WRAP "
        + "format."
    ),
    (
      "SharedAccessSignature sr=a&sig=b&skn=c",
      "MalformedToken: The credentials contained in the authorization header are not in the WRAP "
        + "format."
    ),
    (
      TestHub.token(key: TestHub.listenKey), "InvalidSignature: The token has an invalid signature."
    ),
    (TestHub.token(name: "nobody"), "InvalidSignature: The token has an invalid signature."),
    (TestHub.token(lifetime: -3600), "ExpiredToken: "),
    (
      TestHub.token(resource: "https://\(TestHub.host)/hub10"),
      "InvalidAudience: The authorization header contains a token with a wrong audience."
    ),
    (
      TestHub.token(resource: "https://other.example/hub1"),
      "InvalidAudience: The authorization header contains a token with a wrong audience."
    ),
  ]

  @Test(
    "a token that does not hold is 401 with its reason, before anything else", arguments: badTokens)
  func badToken(token: String?, message: String) async throws {
    let hub = try await TestHub()
    let commits = await hub.store.statistics().commits.count
    for target in [Self.path, "\(Self.path)?api-version=wrong"] {
      let reply = await hub.send(.get, target, token: token)
      #expect(reply.status == .unauthorized)
      // A blank before the closing mark is part of the text.
      #expect(reply.text.hasPrefix("<Error><Code>401</Code><Detail>\(message).TrackingId:"))
    }
    #expect(await hub.store.statistics().commits.count == commits, "nothing is written")
  }

  @Test("without a good token a request is refused by its head, before its body is read")
  func refusedHead() async throws {
    let hub = try await TestHub()
    func look(
      _ method: HTTPMethod, _ target: String, _ headers: [String: String]
    ) -> HTTPHeadLook {
      var fields = HTTPHeaders()
      fields["Host"] = TestHub.host
      for (name, value) in headers { fields[name] = value }
      return hub.api.look(
        atHead: HTTPRequest(method: method, target: HTTPTarget(target), headers: fields))
    }
    func status(_ method: HTTPMethod, _ target: String, _ headers: [String: String]) -> Int? {
      if case .refused(let reply) = look(method, target, headers) {
        reply.status.rawValue
      } else {
        nil
      }
    }
    func sender(_ target: String, _ token: String) -> String? {
      if case .passed(let sender) = look(.put, target, ["Authorization": token]) {
        sender
      } else {
        nil
      }
    }
    // Nothing is in memory yet, and so nobody known.
    #expect(sender(Self.path, TestHub.token()) == nil)
    #expect(status(.put, Self.path, ["Authorization": TestHub.token(lifetime: -1)]) == 401)
    // What the directory has in memory is fresh.
    _ = await hub.send(.get, Self.path, token: TestHub.token())
    #expect(sender(Self.path, TestHub.token()) == "1/\(TestHub.fullName)")
    #expect(
      sender(Self.path, TestHub.token(name: TestHub.listenName, key: TestHub.listenKey))
        == "1/\(TestHub.listenName)")
    // Who invents a name is a stranger, whatever hub they ask for; an old token is nobody's.
    #expect(sender(Self.path, TestHub.token(name: "nobody")) == nil)
    #expect(status(.put, Self.path, ["Authorization": TestHub.token(name: "nobody")]) == nil)
    for name in [TestHub.fullName, "nobody"] {
      let old = TestHub.token(name: name, lifetime: -1)
      #expect(status(.put, Self.path, ["Authorization": old]) == 401)
      #expect(status(.put, "/nohub/installations/i", ["Authorization": old]) == 401)
    }
    let good = ["Authorization": TestHub.token()]
    #expect(status(.put, Self.path, [:]) == 401)
    #expect(status(.put, Self.path, ["Authorization": "Bearer abc"]) == 401)
    #expect(
      status(.put, Self.path, ["Authorization": TestHub.token(key: TestHub.listenKey)]) == 401)
    #expect(status(.put, Self.path, good) == nil)
    #expect(status(.post, "/hub1/messages", [:]) == 401)
    // What is not an operation of a hub, or has no body, is looked at as a whole.
    #expect(status(.post, "/$portal/session", [:]) == nil)
    #expect(status(.get, Self.path, [:]) == nil)
    // Of a hub that is not known here the directory may not have heard yet.
    #expect(status(.put, "/nohub/installations/i", good) == nil)
  }

  static let refusedRequests: [(HTTPMethod, String, Int)] = [
    (.get, "/hub1/foo", 404), (.put, "/hub1/messages", 405), (.post, "/hub1", 405),
    (.get, "/hub1/installations/a/b", 404), (.get, "/team/app/foo", 404),
    (.put, "/team/app/messages", 405), (.put, "/nohub/messages", 405), (.get, "/%zz/foo", 404),
    (.delete, "/", 405), (.put, "/$Resources/NotificationHubs", 405), (.get, "///", 404),
    (.post, "/nohub", 405), ("BREW", "/a/b/c/d/e/f/g/h/i/j/k/l", 404),
  ]

  @Test(
    "what there is, and what may be done with it, is told to holders of a token only",
    arguments: refusedRequests)
  func tokenFirst(method: HTTPMethod, target: String, status: Int) async throws {
    let hub = try await TestHub(hubs: ["hub1", "team/app"])
    let without = await hub.send(method, target, token: nil)
    #expect(without.status == .unauthorized)
    #expect(without.message?.hasPrefix("MissingToken") == true)
    let resource = "https://\(TestHub.host)/"
    let wrong = TestHub.token(
      resource: resource, name: "RootManageSharedAccessKey", key: TestHub.fullKey)
    #expect(await hub.send(method, target, token: wrong).status == .unauthorized)
    let root = TestHub.token(
      resource: resource, name: "RootManageSharedAccessKey", key: TestHub.rootKey)
    let reply = await hub.send(method, target, token: root)
    #expect(reply.status.rawValue == status)
    #expect((reply.headers["Allow"] != nil) == (status == 405))
  }

  @Test("the key of a hub with slashes in its name holds for what is not there, too")
  func ownKeyFirst() async throws {
    let hub = try await TestHub(hubs: ["team/app"])
    let token = TestHub.token(resource: "https://\(TestHub.host)/team/app")
    #expect(await hub.send(.get, "/team/app/foo", token: token).status == .notFound)
    #expect(await hub.send(.put, "/team/app/messages", token: token).status == .methodNotAllowed)
  }

  @Test("a valid token on a missing installation is 404")
  func missingInstallation() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.get, Self.path)
    #expect(reply.status == .notFound)
    #expect(reply.message == "Installation not found")
  }

  @Test("an unknown hub is 404 to a token of the namespace")
  func unknownHub() async throws {
    let hub = try await TestHub()
    let token = TestHub.token(
      resource: "https://\(TestHub.host)/", name: "RootManageSharedAccessKey",
      key: TestHub.rootKey)
    let reply = await hub.send(.get, "/nohub/installations/i1", token: token)
    #expect(reply.status == .notFound)
    #expect(reply.message == "No service is hosted at the specified address.")
  }

  static let listen = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)

  @Test("a Listen key may register but not send: 403 without a body")
  func missingRight() async throws {
    let hub = try await TestHub()
    let put = await hub.send(
      .put, Self.path, body: HubAPITransportTests.installation, token: Self.listen)
    #expect(put.status == .ok)
    for (method, target) in [(HTTPMethod.post, "/hub1/messages"), (.get, "/hub1/messages/7")] {
      let reply = await hub.send(method, target, body: "{}", token: Self.listen)
      #expect(reply.status == .forbidden)
      #expect(reply.text == "")
      #expect(reply.headers["Content-Type"] == nil)
      #expect(
        reply.headers["Belfry-Reason"]
          == "policy/\(TestHub.listenName) lacks the right Send in this hub; it has Listen.")
      #expect(reply.headers["TrackingId"] != nil)
      #expect(reply.headers["Retry-After"] == nil)
    }
  }

  @Test("a stranger is told what was wrong with a key, and the same of a hub that is not there")
  func reasonForStrangers() async throws {
    let hub = try await TestHub()
    var said: Set<String> = []
    for name in ["hub1", "hub9"] {
      let reply = await hub.send(
        .get, "/\(name)/installations/7",
        token: TestHub.token(name: "a\u{E9}b", key: TestHub.listenKey))
      #expect(reply.status == .unauthorized)
      let reason = try #require(reply.headers["Belfry-Reason"])
      #expect(reason.hasPrefix("No key of a policy 'a"))
      #expect(reason.utf8.allSatisfy { (0x20...0x7E).contains($0) })
      said.insert(reason.replacingOccurrences(of: name, with: "*"))
    }
    #expect(said.count == 1)
  }

  @Test("the vectors' tokens are accepted, whatever form the client gave them")
  func vectors() async throws {
    let hub = try await TestHub()
    let java =
      "SharedAccessSignature sr=https%3a%2f%2fcontoso-ns.servicebus.windows.net%2fhub1%2f"
      + "installations%2f3f1c6c0e%3fapi-version%3d2020-06&sig=mezCpSOE%2BumE%2FxTiUG7E278WwWBmJdkO"
      + "z13BqUZ1OgU%3D&se=1924991999&skn=DefaultListenSharedAccessSignature"
    let reply = await hub.send(
      .get, "/hub1/installations/3f1c6c0e?api-version=2020-06", token: java)
    #expect(reply.status == .notFound)
    #expect(reply.message == "Installation not found")
  }

  @Test("a token for a configured public name holds behind a proxy")
  func publicNames() async throws {
    var configuration = HubAPIConfiguration()
    let token = TestHub.token(resource: "https://push.example.com/hub1")
    let without = try await TestHub(configuration: configuration)
    #expect(await without.send(.get, Self.path, token: token).status == .unauthorized)
    configuration.publicHosts = ["push.example.com"]
    let with = try await TestHub(configuration: configuration)
    #expect(await with.send(.get, Self.path, token: token, host: "10.0.0.7:80").status == .notFound)
  }
}
