import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

@Suite("Feedback", .timeLimit(.minutes(5)))
struct FeedbackTests {
  private static let handle = String(repeating: "AB12", count: 16)

  /// A hub in which push services have refused some handles.
  private func refuse(_ count: Int, on hub: TestHub) async throws -> Hub {
    let target = try await hub.service.hub(named: "hub1")
    for number in 0..<count {
      _ = try await hub.service.registrations.create(
        hub: target,
        Registration(platform: .apns, channel: .handle("\(Self.handle)\(10_000 + number)A")))
    }
    let record = try await hub.service.send(
      hub: target, headers: [("ServiceBusNotification-Format", "apple")],
      body: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
    let query = AudienceQuery(
      hub: target.id, kind: .native(.apns), expression: nil, asOf: TestHub.now)
    var checkpoint = Checkpoint(notification: record.id, hub: target.id, at: TestHub.now)
    checkpoint.failures = try await hub.store.targets(query, after: 0, limit: 10_000).targets
      .map {
        .init(
          registration: $0.registration, outcome: .expiredChannel, status: 410,
          reason: "Unregistered")
      }
    try await hub.store.checkpoint(checkpoint)
    return target
  }

  @Test(
    "the container's address opens the list and the documents, without a token")
  func container() async throws {
    try await withHub { hub in
      _ = try await refuse(1200, on: hub)
      let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
      let client = SocketClient(port: listener.port)
      let reply = try await client.send("GET", "/hub1/feedbackcontainer?api-version=2015-04")
      #expect(reply.status == 200)
      let url = try #require(URL(string: reply.body))
      #expect(url.absoluteString == reply.body)
      let base = "http://127.0.0.1:\(listener.port)"
      #expect(reply.body.hasPrefix("\(base)/hub1/$feedback?sv="))
      let query = try #require(url.query(percentEncoded: true))
      let headers = [WireName.authorization: ""]
      let list = try await client.send(
        "GET", "/hub1/$feedback?restype=container&comp=list&\(query)", headers: headers)
      #expect(list.status == 200)
      #expect(list.body.contains("<Name>2030-01-05T10.xml</Name>"))
      #expect(
        list.body.contains("<Last-Modified>Sat, 05 Jan 2030 10:00:00 GMT</Last-Modified>"))
      let blob = try await client.send(
        "GET", "/hub1/$feedback/2030-01-05T10.xml?\(query)", headers: headers)
      #expect(blob.status == 200)
      #expect(blob.headers["x-ms-blob-type"] == "BlockBlob")
      let documents = try PnsFeedback.parse(Data(blob.body.utf8))
      #expect(documents.count == 1200)
      #expect(Set(documents.map(\.notificationSystemError)) == ["ExpiredChannel"])
      #expect(documents.first?.platform == "apple")
      #expect(documents.first?.pnsHandle.hasPrefix(Self.handle) == true)
      #expect(documents.allSatisfy { $0.registrationID != nil && $0.installationID == nil })
      let missing = try await client.send(
        "GET", "/hub1/$feedback/2030-01-05T11.xml?\(query)", headers: headers)
      #expect(missing.status == 404)
      await listener.stop()
    }
  }

  @Test("a signature that is not ours, or is for something else, opens nothing")
  func signatures() async throws {
    let hub = try await TestHub(hubs: ["hub1", "hub2"])
    let listen = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)
    #expect(await hub.send(.get, "/hub1/feedbackcontainer", token: listen).status == .forbidden)
    let url = await hub.send(.get, "/hub1/feedbackcontainer").text
    let query = String(url.drop { $0 != "?" }.dropFirst())
    func status(_ target: String) async -> Int {
      await hub.send(.get, target, token: nil).status.rawValue
    }
    #expect(await status("/hub1/$feedback?\(query)") == 200)
    #expect(await status("/HUB1/%24feedback/?\(query)") == 200)
    #expect(await status("/hub1/$feedback") == 401)
    #expect(await status("/hub2/$feedback?\(query)") == 401)
    #expect(await status("/hub1/$feedback?\(query.replacing("se=2030", with: "se=2031"))") == 401)
    #expect(await status("/hub1/$feedback?\(query.replacing("sig=", with: "sig=a"))") == 401)
    #expect(await status("/hub1/$feedback?\(query.replacing("se=", with: "se=x"))") == 401)
    #expect(await hub.send(.put, "/hub1/$feedback?\(query)").status == .methodNotAllowed)
    // Told as a token, it opens nothing else either.
    let fields = Dictionary(
      query.split(separator: "&").map { item in
        let parts = item.split(separator: "=", maxSplits: 1)
        return (String(parts[0]), String(parts[1]))
      }, uniquingKeysWith: { $1 })
    let frame = SharedAccessSignature(
      resource: "https://\(TestHub.host)/hub1/$feedback", keyName: TestHub.fullName, key: "",
      expiresAt: TestHub.now.addingTimeInterval(12 * 3600)
    ).text
    let token = frame.replacing(/sig=[^&]*/, with: "sig=\(fields["sig"] ?? "")")
    let reply = await hub.send(.get, "/hub1/registrations", token: token)
    #expect(reply.message?.hasPrefix("InvalidAudience") == true)
  }
}
