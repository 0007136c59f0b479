import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("Every operation of the clients")
struct ClientOperationTests {
  static func client(_ transport: FakeTransport) -> NotificationHubClient {
    NotificationHubClientTests.client(transport)
  }

  static func reply(_ text: String, headers: [String: String] = [:]) -> TransportReply {
    TransportReply(status: 200, headers: headers, body: Data(text.utf8))
  }

  static let stored = Registration(
    platform: .apns, channel: .handle("0A1B"), tags: ["a"], registrationID: "1-2-3", etag: "4")
  static let entry = stored.entryXML(
    address: AtomAddress("https://h/hub1/registrations/1-2-3"), form: .written, now: Date())

  @Test("registrations are made, changed, read and deleted as documented")
  func registrations() async throws {
    let location = "https://contoso.example/hub1/registrationids/9-9-9?api-version=2020-06"
    let transport = FakeTransport(
      Self.reply(Self.entry), TransportReply(status: 201, headers: ["Location": location]),
      Self.reply(Self.entry), Self.reply(Self.entry), Self.reply(Self.entry),
      Self.reply(Self.entry), TransportReply(status: 200), TransportReply(status: 200))
    let client = Self.client(transport)
    var anyTag = Self.stored
    anyTag.etag = nil
    #expect(try await client.create(Self.stored) == Self.stored)
    #expect(try await client.createRegistrationID() == "9-9-9")
    #expect(try await client.createOrUpdate(Self.stored) == Self.stored)
    #expect(try await client.update(Self.stored) == Self.stored)
    #expect(try await client.update(anyTag) == Self.stored)
    #expect(try await client.registration("1-2-3") == Self.stored)
    try await client.delete(registration: "1-2-3")
    try await client.delete(registration: "1-2-3", etag: "4")
    let requests = transport.requests
    #expect(
      requests.map(\.method) == ["POST", "POST", "PUT", "PUT", "PUT", "GET", "DELETE", "DELETE"])
    #expect(
      requests.map { $0.headers["If-Match"] } == [nil, nil, nil, "\"4\"", "*", nil, "*", "\"4\""])
    #expect(requests[1].url.path == "/hub1/registrationids")
    #expect(requests[2].url.path == "/hub1/registrations/1-2-3")
    let body = try #require(requests[0].body)
    let sent = try Registration.decodeRequest(body)
    #expect(sent.channel == .handle("0A1B") && sent.tags == ["a"])
    #expect(!String(decoding: body, as: UTF8.self).contains("RegistrationId"))
  }

  @Test("a handle is searched for in the body, and statistics are asked for by time")
  func searchAndStatistics() async throws {
    let search = DeviceSearch(
      installations: [
        Installation(installationID: "i", platform: .apns, pushChannel: .handle("0A1B"))
      ],
      registrations: [
        .init(
          registrationID: "1-2-3", platform: .apns, installationID: "i", tags: ["a"],
          template: "", expirationTime: Date(timeIntervalSince1970: 1_893_456_000),
          confirmedTime: Date(timeIntervalSince1970: 1_893_000_000))
      ], hasMore: true)
    let time = Date(timeIntervalSince1970: 1_893_456_000)
    let statistics = HubStatistics(
      from: time, to: time + 60, step: 60,
      points: [
        .init(
          time: time, accepted: 3, delivered: ["apns": 120], failed: ["apns": ["BadChannel": 2]],
          registrations: ["apns": 812])
      ])
    let transport = FakeTransport(
      Self.reply(String(decoding: search.json, as: UTF8.self)),
      Self.reply(String(decoding: statistics.json, as: UTF8.self)), Self.reply("{}"))
    let client = Self.client(transport)
    #expect(try await client.devices(withHandle: #"0a"1b"#) == search)
    #expect(try await client.statistics(from: time, to: time + 60, step: 60) == statistics)
    let error = await NotificationHubClientTests.failure { _ = try await client.statistics() }
    #expect(error?.kind == .unexpectedReply)
    let requests = transport.requests
    #expect(requests[0].method == "POST" && requests[0].url.path == "/hub1/devices/search")
    let body = try DeviceSearch.handle(in: try #require(requests[0].body))
    #expect(body == #"0a"1b"#)
    #expect(requests[1].url.path == "/hub1/statistics")
    #expect(
      requests[1].url.query?.hasSuffix(
        "&from=2030-01-01T00%3A00%3A00.000Z&to=2030-01-01T00%3A01%3A00.000Z&step=60") == true)
  }

  @Test("a write needs an id")
  func missingID() async {
    let transport = FakeTransport()
    let error = await NotificationHubClientTests.failure {
      _ = try await Self.client(transport).update(
        Registration(platform: .apns, channel: .handle("0A")))
    }
    #expect(error?.kind == .badRequest && transport.requests.isEmpty)
  }

  static func page(_ ids: [String]) -> String {
    let page = ids.map {
      Registration(platform: .adm, channel: .handle("x"), registrationID: $0, etag: "1")
    }
    return Registration.feedXML(
      page, address: AtomAddress("https://h/hub1/registrations"), now: Date())
  }

  @Test("a list goes on until there is no token, also past an empty page")
  func paging() async throws {
    let transport = FakeTransport(
      Self.reply(Self.page(["1", "2"]), headers: ["x-ms-continuationtoken": "a%3D"]),
      Self.reply(Self.page([]), headers: ["x-ms-continuationtoken": "b"]),
      Self.reply(Self.page(["3"])))
    let list = Self.client(transport).registrations(tag: .user("bob"), pageSize: 2)
    #expect(try await list.all().compactMap(\.registrationID) == ["1", "2", "3"])
    let base =
      "https://contoso.example/hub1/tags/%24UserId%3A%7Bbob%7D/registrations?api-version=2020-06&$top=2"
    #expect(
      transport.requests.map(\.url.absoluteString) == [
        base, base + "&continuationtoken=a%3D", base + "&continuationtoken=b",
      ])
  }

  @Test("a list that goes round in circles is an error")
  func circle() async {
    let same = Self.reply(Self.page(["1"]), headers: ["x-ms-continuationtoken": "a"])
    let error = await NotificationHubClientTests.failure {
      _ = try await Self.client(FakeTransport(same, same, same)).registrations().all()
    }
    #expect(error?.kind == .unexpectedReply)
  }

  @Test("the registrations of a device are found and deleted")
  func channel() async throws {
    let transport = FakeTransport(
      Self.reply(Self.page(["1", "2"])), TransportReply(status: 200), TransportReply(status: 200))
    try await Self.client(transport).deleteRegistrations(channel: .handle("it's"))
    #expect(
      transport.requests.map { $0.method + " " + $0.url.path } == [
        "GET /hub1/registrations", "DELETE /hub1/registrations/1", "DELETE /hub1/registrations/2",
      ])
    let query = try #require(transport.requests[0].url.query)
    let filter = try #require(query.components(separatedBy: "$filter=").last)
    #expect(try RegistrationFilter(parsing: filter.percentDecoded).handles.contains("it's"))
  }

  static let sent = NotificationHubClientTests.sent
  static let note = PushNotification.apple(#"{"aps":{"alert":"hi"}}"#)

  @Test("direct, scheduled and test sends go out as documented")
  func sends() async throws {
    let transport = FakeTransport(
      Self.sent, Self.sent, Self.sent, Self.sent, TransportReply(status: 200),
      TransportReply(status: 201, body: Data(SendDocumentTests.report.xml.utf8)), Self.sent)
    let client = Self.client(transport)
    try await client.sendDirect(Self.note, to: .handle("0A1B"), idempotencyKey: "key-1")
    try await client.sendDirect(
      .native(.browser, "{}"), to: .subscription(endpoint: "https://p/1", p256dh: "k", auth: "a"))
    try await client.sendDirect(Self.note, to: [.handle("h1"), .handle("h2")])
    let time = Date(timeIntervalSince1970: 1_893_837_600.9)
    try await client.schedule(Self.note, at: time, to: "a" || "b")
    try await client.cancel(scheduled: "n-1")
    #expect(try await client.testSend(Self.note) == SendDocumentTests.report)
    try await client.send(Self.note, to: "a", idempotencyKey: "key-2")
    let requests = transport.requests
    #expect(
      requests.map { $0.url.absoluteString.replacing("https://contoso.example/hub1", with: "") }
        == [
          "/messages?api-version=2020-06&direct", "/messages?api-version=2020-06&direct",
          "/messages/$batch?api-version=2020-06&direct",
          "/schedulednotifications?api-version=2020-06",
          "/schedulednotifications/n-1?api-version=2020-06", "/messages?api-version=2020-06&test",
          "/messages?api-version=2020-06",
        ])
    #expect(requests[0].headers["ServiceBusNotification-DeviceHandle"] == "0A1B")
    #expect(requests[0].headers["Idempotency-Key"] == "key-1")
    #expect(requests[1].headers["ServiceBusNotification-DeviceHandle"] == "https://p/1")
    #expect(requests[1].headers["P256DH"] == "k" && requests[1].headers["Auth"] == "a")
    let batch = try DirectBatch(
      try #require(requests[2].body), contentType: try #require(requests[2].headers["Content-Type"])
    )
    #expect(batch.devices == [.handle("h1"), .handle("h2")])
    #expect(batch.notification == Array(Self.note.body))
    #expect(requests[3].headers["ServiceBusNotification-ScheduleTime"] == "2030-01-05T10:00:00Z")
    #expect(requests[3].headers["ServiceBusNotification-Tags"] == "a || b")
    #expect(requests[4].method == "DELETE")
    #expect(requests[6].headers["Idempotency-Key"] == "key-2")
  }

  @Test("a batch has at least one device, and how many are too many is for the hub to say")
  func batchSize() async throws {
    let transport = FakeTransport(TransportReply(status: 201))
    let error = await NotificationHubClientTests.failure {
      try await Self.client(transport).sendDirect(Self.note, to: [])
    }
    #expect(error?.kind == .badRequest && transport.requests.isEmpty)
    let devices = [PushChannel](repeating: .handle("h"), count: 1001)
    try await Self.client(transport).sendDirect(Self.note, to: devices)
    #expect(transport.requests.count == 1)
  }

  @Test("jobs and feedback go out as documented")
  func jobs() async throws {
    let job = ManagementDocumentTests.done
    let address = AtomAddress("https://h/hub1/jobs")
    let entry = job.entryXML(address: address, now: Date())
    let transport = FakeTransport(
      Self.reply(entry), Self.reply(entry),
      Self.reply(NotificationHubJob.feedXML([job], address: address, now: Date())),
      Self.reply("https://blob.example/c?sig=a"), Self.reply("none"))
    let client = Self.client(transport)
    #expect(try await client.submit(job) == job)
    #expect(try await client.job("j-1") == job)
    #expect(try await client.jobs() == [job])
    #expect(try await client.feedbackContainer().absoluteString == "https://blob.example/c?sig=a")
    let error = await NotificationHubClientTests.failure {
      _ = try await client.feedbackContainer()
    }
    #expect(error?.kind == .unexpectedReply)
    #expect(
      transport.requests.map { $0.method + $0.url.path } == [
        "POST/hub1/jobs", "GET/hub1/jobs/j-1", "GET/hub1/jobs", "GET/hub1/feedbackcontainer",
        "GET/hub1/feedbackcontainer",
      ])
    _ = try NotificationHubJob.decodeRequest(try #require(transport.requests[0].body))
  }

  @Test("Belfry's own operations go out as documented")
  func extensions() async throws {
    let phone = NotificationHubClientTests.phone
    let list = String(decoding: InstallationList.json([phone]), as: UTF8.self)
    let transport = FakeTransport(
      Self.reply(list, headers: ["x-ms-continuationtoken": "t"]), Self.reply(list),
      Self.reply(#"{"total":3,"counts":[]}"#),
      Self.reply(#"{"installations":1,"schedules":0,"notifications":0,"deviceRecords":0}"#))
    let client = Self.client(transport)
    let query = InstallationQuery(
      tag: "a b", user: "bob", platform: .apns, expired: false, pageSize: 1)
    #expect(try await client.installations(query).all() == [phone, phone])
    #expect(try await client.count(of: "a" && "b").total == 3)
    #expect(try await client.erase(user: "bob").installations == 1)
    #expect(
      transport.requests.map {
        $0.url.absoluteString.replacing("https://contoso.example/hub1", with: "")
      } == [
        "/installations?api-version=2020-06&tag=a%20b&user=bob&platform=apns&expired=false&$top=1",
        "/installations?api-version=2020-06&tag=a%20b&user=bob&platform=apns&expired=false&$top=1&continuationtoken=t",
        "/audience?api-version=2020-06&tags=a%20%26%26%20b", "/users/bob?api-version=2020-06",
      ])
  }

  @Test("removed devices are listed and brought back, as often as the hub asks for")
  func removals() async throws {
    let transport = FakeTransport(
      Self.reply(
        #"{"removals":[{"hour":"2030-01-05T10:00:00Z","platform":"apns","outcome":"BadChannel","#
          + #""registrations":2},{"hour":"x","platform":"pigeon"}]}"#),
      Self.reply(#"{"restored":5000,"superseded":1,"more":true}"#),
      Self.reply(#"{"restored":20,"superseded":2,"more":false}"#))
    let client = Self.client(transport)
    let since = Date(timeIntervalSince1970: 1_893_837_600)
    let found = try await client.removedDevices(on: .apns)
    #expect(found.total == 2)
    #expect(
      found.items == [
        .init(hour: since, platform: .apns, outcome: "BadChannel", registrations: 2)
      ])
    #expect(
      try await client.restoreDevices(since: since)
        == DeviceRestoration(restored: 5020, superseded: 3))
    #expect(
      transport.requests.map {
        $0.method + $0.url.absoluteString.replacing("https://contoso.example/hub1", with: " ")
      } == [
        "GET /removals?api-version=2020-06&platform=apns",
        "POST /removals/restore?api-version=2020-06&since=2030-01-05T10%3A00%3A00Z",
        "POST /removals/restore?api-version=2020-06&since=2030-01-05T10%3A00%3A00Z",
      ])
  }

  @Test("credentials are listed and tried as documented")
  func credentials() async throws {
    let transport = FakeTransport(
      Self.reply(
        #"{"credentials":[{"platform":"apns","kind":"token","app":"com.example.app","#
          + #""modifiedAt":"2030-01-05T10:00:00.000Z"},{"platform":"pigeon"}]}"#),
      Self.reply(#"{"verdict":"refused","reason":"InvalidProviderToken","text":"No."}"#))
    let client = Self.client(transport)
    #expect(
      try await client.credentials() == [
        CredentialState(
          platform: .apns, kind: "token", app: "com.example.app",
          modifiedAt: Date(timeIntervalSince1970: 1_893_837_600))
      ])
    let probe = try await client.probeCredential(of: .apns)
    #expect(probe == CredentialProbe(.refused, reason: "InvalidProviderToken", "No."))
    #expect(
      transport.requests.map {
        $0.method + $0.url.absoluteString.replacing("https://contoso.example/hub1", with: " ")
      } == [
        "GET /credentials?api-version=2020-06",
        "POST /credentials/apns/probe?api-version=2020-06",
      ])
  }

  @Test("notifications and schedules are listed as documented")
  func notifications() async throws {
    var sent = NotificationSummary(
      notificationID: "n", state: .completed, kind: .tag, format: "apple", tags: "a && b",
      enqueueTime: Date(timeIntervalSince1970: 1), endTime: Date(timeIntervalSince1970: 2.5),
      outcomes: ["Success": 5, "BadChannel": 2, "Skipped": 1])
    (sent.title, sent.text, sent.textState) = ("Goal!", "Oslo leads", .kept)
    let waiting = NotificationSummary(
      notificationID: "s", state: .scheduled, kind: .schedule, format: "template",
      dueTime: Date(timeIntervalSince1970: 9))
    let transport = FakeTransport(
      Self.reply(
        String(decoding: NotificationList.json([sent]), as: UTF8.self),
        headers: ["x-ms-continuationtoken": "t"]),
      Self.reply(#"{"notifications":[]}"#),
      Self.reply(String(decoding: NotificationList.json([waiting]), as: UTF8.self)))
    let client = Self.client(transport)
    let query = NotificationQuery(
      states: [.completed, .abandoned], kind: .tag, tag: "a", search: "goal!",
      from: Date(timeIntervalSince1970: 0), until: Date(timeIntervalSince1970: 60), pageSize: 1)
    #expect(try await client.notifications(query).all() == [sent])
    #expect(sent.succeeded == 5 && sent.failed == 2)
    #expect(try await client.scheduledNotifications().all() == [waiting])
    let first =
      "/messages?api-version=2020-06&state=Completed%2CAbandoned&kind=tag&tag=a&q=goal%21"
      + "&from=1970-01-01T00%3A00%3A00.000Z&until=1970-01-01T00%3A01%3A00.000Z&$top=1"
    #expect(
      transport.requests.map {
        $0.url.absoluteString.replacing("https://contoso.example/hub1", with: "")
      } == [
        first, first + "&continuationtoken=t", "/schedulednotifications?api-version=2020-06",
      ])
    #expect(transport.requests.allSatisfy { $0.headers["Belfry-Extensions"] == "true" })
  }

  @Test("hubs are made, changed, read, listed and deleted as documented")
  func namespace() async throws {
    let hub = ManagementDocumentTests.full
    let now = ManagementDocumentTests.time
    let stored = ManagementDocumentTests.stored
    let entry = hub.entryXML(
      address: AtomAddress("https://h/hub1"), namespace: "h", published: now, updated: now)
    let nothing = HubListing.services(hubs: [], endpoint: "h", service: "s", number: 1, now: now)
    let feed = HubListing.descriptions(
      [(hub, now, now)], address: AtomAddress("https://h/x"), namespace: "h", now: now)
    let transport = FakeTransport(
      Self.reply(entry), Self.reply(entry), Self.reply(entry), Self.reply(nothing),
      Self.reply(feed), TransportReply(status: 200))
    let client = NamespaceClient(
      connectionString: NotificationHubClientTests.connection, transport: transport, retry: .none)
    #expect(try await client.create(hub) == stored)
    #expect(try await client.update(hub) == stored)
    #expect(try await client.hub("hub1") == stored)
    let error = await NotificationHubClientTests.failure { _ = try await client.hub("other") }
    #expect(error?.kind == .notFound)
    #expect(try await client.hubs() == [stored])
    try await client.delete(hub: "hub1")
    let requests = transport.requests
    #expect(requests.map(\.method) == ["PUT", "PUT", "GET", "GET", "GET", "DELETE"])
    #expect(requests.map { $0.headers["If-Match"] } == [nil, "*", nil, nil, nil, nil])
    #expect(
      requests[4].url.absoluteString
        == "https://contoso.example/$Resources/NotificationHubs?api-version=2020-06&$skip=0&$top=2147483647"
    )
    for request in requests {
      let token = try SharedAccessSignature(parsing: request.headers["Authorization"] ?? "")
      #expect(token.covers(path: request.url.path, hosts: ["contoso.example"]))
    }
  }
}
