import Foundation
import HTTPServer
import HubCore
import HubServer
import HubTesting
import NotificationHubs
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite("Direct, batch, scheduled and test sends through the REST API")
struct HubAPISendKindsTests {
  static let apple = #"{"aps":{"alert":"hi"}}"#
  static let format: HTTPHeaders = ["ServiceBusNotification-Format": "apple"]
  static let direct: HTTPHeaders = [
    "ServiceBusNotification-Format": "apple", "ServiceBusNotification-DeviceHandle": "0A1B",
  ]
  static let multipart: HTTPHeaders = [
    "ServiceBusNotification-Format": "apple", "Content-Type": "multipart/mixed; boundary = b1",
  ]
  static let batch =
    "--b1\nContent-Disposition: inline; name=\"devices\"\n\n['0a','0b']\n"
    + "--b1\nContent-Disposition: inline; name=\"notification\"\n\n\(apple)\n--b1--\n"
  static let scheduled: HTTPHeaders = [
    "ServiceBusNotification-Format": "apple",
    "ServiceBusNotification-ScheduleTime": "2030-01-05T11:00:00",
  ]

  @Test(
    "the Location repeats path and query, flags included",
    arguments: [
      ("/hub1/messages?direct&api-version=2015-08", direct, apple, "messages/"),
      ("/hub1/messages/?api-version=2015-08&direct", direct, apple, "messages/"),
      ("/hub1/messages/$batch?api-version=2017-04&direct", multipart, batch, "messages/$batch/"),
      ("/hub1/messages/%24batch?direct", multipart, batch, "messages/%24batch/"),
      ("/hub1/messages/$BATCH/?direct", multipart, batch, "messages/$BATCH/"),
      (
        "/hub1/schedulednotifications/?api-version=2020-06", scheduled, apple,
        "schedulednotifications/"
      ),
    ])
  func location(target: String, headers: HTTPHeaders, body: String, path: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(.post, target, headers: headers, body: body)
    #expect(reply.status == .created)
    #expect(reply.text == "")
    let location = try #require(reply.headers["Location"])
    #expect(location.hasPrefix("http://\(TestHub.host)/hub1/\(path)"))
    #expect(location.hasSuffix("?" + (target.split(separator: "?").last ?? "")))
    let id = location.prefix { $0 != "?" }.split(separator: "/").last ?? ""
    let telemetry = await hub.send(.get, "/hub1/messages/\(id)")
    #expect(telemetry.status == .ok)
    #expect(telemetry.text.contains("<NotificationId>\(id)</NotificationId>"))
    #expect(await hub.send(.get, "/hub1/messages/$batch/\(id)").status == .ok)
  }

  @Test("a scheduled notification shows its state, and can be cancelled once")
  func cancel() async throws {
    let hub = try await TestHub()
    let sent = await hub.send(
      .post, "/hub1/schedulednotifications", headers: Self.scheduled, body: Self.apple)
    let id = try #require(
      sent.headers["Location"].flatMap { URL(string: $0) }?.lastPathComponent)
    let waiting = await hub.send(.get, "/hub1/messages/\(id)")
    #expect(waiting.text.contains("<State>Scheduled</State>"))
    let cancelled = await hub.send(
      .delete, "/hub1/ScheduledNotifications/\(id)?api-version=2020-06")
    #expect(cancelled.status == .ok)
    #expect(cancelled.text == "")
    #expect(await hub.send(.get, "/hub1/messages/\(id)").text.contains("<State>Canceled</State>"))
    #expect(await hub.send(.delete, "/hub1/schedulednotifications/\(id)").status == .notFound)
    #expect(await hub.send(.put, "/hub1/schedulednotifications").status == .methodNotAllowed)
  }

  @Test("a direct send cannot be scheduled")
  func scheduledDirect() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      .post, "/hub1/schedulednotifications?direct", headers: Self.scheduled, body: Self.apple)
    #expect(reply.status == .badRequest)
    #expect(try await hub.store.nextSchedule() == nil)
  }

  @Test("a test send always has a document")
  func testSend() async throws {
    try await withHub { hub in
      let empty = await hub.send(
        .post, "/hub1/messages?test&api-version=2020-06", headers: Self.format, body: Self.apple)
      #expect(empty.status == .created)
      #expect(empty.headers["Content-Type"] == "application/xml; charset=utf-8")
      #expect(
        empty.text == "<NotificationOutcome xmlns=\"\(WireName.connectNamespace)\" "
          + "xmlns:i=\"\(WireName.schemaInstanceNamespace)\">"
          + "<Success>0</Success><Failure>0</Failure><Results/></NotificationOutcome>")
      let id = try #require(
        await hub.send(.post, "/hub1/registrationids").headers["Location"]
          .flatMap { URL(string: $0) }?.lastPathComponent)
      let registration = await hub.send(
        .put, "/hub1/registrations/\(id)",
        body: "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\">"
          + "<AppleRegistrationDescription xmlns=\"\(WireName.connectNamespace)\">"
          + "<DeviceToken>0A1B</DeviceToken></AppleRegistrationDescription></content></entry>")
      #expect(registration.status == .ok)
      let report = await hub.send(
        .post, "/hub1/messages?test", headers: Self.format, body: Self.apple)
      #expect(
        report.text.contains(
          "<Success>0</Success><Failure>1</Failure><Results><RegistrationResult>"
            + "<ApplicationPlatform>apple</ApplicationPlatform><PnsHandle>0A1B</PnsHandle>"
            + "<RegistrationId>\(id)</RegistrationId><Outcome>"))
      #expect(!report.text.contains("<Reason>") && !report.text.contains("<Status>"))
      var extended = Self.format
      extended[WireName.extensions] = "true"
      let more = await hub.send(.post, "/hub1/messages?test", headers: extended, body: Self.apple)
      #expect(more.text.contains("</Outcome><Status>0</Status><Reason>"), "\(more.text)")
    }
  }

  @Test("the eleventh test send of a minute is 429 with Retry-After")
  func testRate() async throws {
    let hub = try await TestHub()
    for _ in 0..<10 {
      #expect(
        await hub.send(.post, "/hub1/messages?test", headers: Self.format, body: Self.apple)
          .status == .created)
    }
    let reply = await hub.send(.post, "/hub1/messages?test", headers: Self.format, body: Self.apple)
    #expect(reply.status.rawValue == 429)
    #expect(reply.headers["Retry-After"] == "60")
  }

  @Test(
    "anyone who may only listen may not send, schedule or cancel",
    arguments: [
      (HTTPMethod.post, "/hub1/messages?direct"), (.post, "/hub1/messages?test"),
      (.post, "/hub1/messages/$batch?direct"), (.post, "/hub1/schedulednotifications"),
      (.delete, "/hub1/schedulednotifications/x"), (.get, "/hub1/messages/x"),
      (.get, "/hub1/messages/x/errors"),
    ])
  func rights(method: HTTPMethod, target: String) async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      method, target, headers: Self.direct, body: Self.apple,
      token: TestHub.token(name: TestHub.listenName, key: TestHub.listenKey))
    #expect(reply.status == .forbidden)
    #expect(reply.text == "")
  }

  @Test("the same Idempotency-Key gives the same Location, another request 422")
  func idempotency() async throws {
    let hub = try await TestHub()
    var headers = Self.format
    headers["Idempotency-Key"] = "order-17"
    let first = await hub.send(.post, "/hub1/messages", headers: headers, body: Self.apple)
    let second = await hub.send(.post, "/hub1/messages", headers: headers, body: Self.apple)
    #expect(first.status == .created && second.status == .created)
    #expect(first.headers["Location"] == second.headers["Location"])
    let other = await hub.send(
      .post, "/hub1/messages", headers: headers, body: #"{"aps":{"badge":1}}"#)
    #expect(other.status.rawValue == 422)
    #expect(try await hub.store.unfinishedNotifications().count == 1)
  }

  // MARK: Errors of devices

  /// A completed direct batch of which so many devices failed.
  private func failed(_ hub: TestHub, devices: Int) async throws -> String {
    let list = (0..<devices).map { "'\($0 + 16)'" }.joined(separator: ",")
    let sent = await hub.send(
      .post, "/hub1/messages/$batch?direct", headers: Self.multipart,
      body: Self.batch.replacing("'0a','0b'", with: list))
    let location = try #require(sent.headers["Location"])
    let id = String(location.prefix { $0 != "?" }.split(separator: "/").last ?? "")
    let record = try #require(try await hub.store.unfinishedNotifications().first)
    var checkpoint = Checkpoint(
      notification: NotificationID(rawValue: id), hub: record.hub, at: TestHub.now)
    checkpoint.state = .completed
    checkpoint.counts[OutcomeKey(platform: .apns, isTemplate: false, outcome: .badChannel)] =
      devices
    checkpoint.failures = (0..<devices).map {
      Checkpoint.Failure(
        registration: RegistrationID($0 + 1), outcome: .badChannel, status: 400, reason: "Bad")
    }
    try await hub.store.checkpoint(checkpoint)
    return id
  }

  private func errorDetails(_ hub: TestHub, _ id: String, query: String) async throws -> URL? {
    let reply = await hub.send(.get, "/hub1/messages/\(id)\(query)")
    let telemetry = try NotificationTelemetry(xml: Data(reply.text.utf8))
    return telemetry.pnsErrorDetailsURI.flatMap { URL(string: $0) }
  }

  @Test(
    "telemetry leads to the errors from 2016-07 on",
    arguments: [
      ("?api-version=2015-08", false), ("?api-version=2016-07", true),
      ("?api-version=2020-06", true), ("", true),
    ])
  func errorVersions(query: String, isThere: Bool) async throws {
    let hub = try await TestHub()
    let id = try await failed(hub, devices: 2)
    #expect((try await errorDetails(hub, id, query: query) != nil) == isThere)
  }

  @Test("a notification without failures leads to no errors")
  func noErrors() async throws {
    let hub = try await TestHub()
    let sent = await hub.send(.post, "/hub1/messages", headers: Self.format, body: Self.apple)
    let id = try #require(
      sent.headers["Location"].flatMap { URL(string: $0) }?.lastPathComponent)
    #expect(try await errorDetails(hub, id, query: "") == nil)
  }

  @Test("the address opens the list of errors, whole, and nothing else")
  func errors() async throws {
    try await withHub { hub in
      let id = try await failed(hub, devices: 700)
      let listener = try HTTPListener(HubAPIConfiguration.listener, handler: hub.api)
      let client = SocketClient(port: listener.port)
      let shown = try await client.send("GET", "/hub1/messages/\(id)?api-version=2020-06")
      let telemetry = try NotificationTelemetry(xml: Data(shown.body.utf8))
      let address = try #require(telemetry.pnsErrorDetailsURI.flatMap { URL(string: $0) })
      // Without the header that the client puts into every other request.
      let (data, response) = try await URLSession.shared.data(from: address)
      #expect((response as? HTTPURLResponse)?.statusCode == 200)
      let errors = try PnsFeedback.parse(data)
      #expect(errors.count == 700)
      #expect(errors.first?.pnsHandle == "16")
      #expect(errors.first?.platform == "apple")
      #expect(errors.first?.notificationSystemError == "BadChannel")
      #expect(errors.first?.notificationID == id)

      let query = try #require(address.query(percentEncoded: true))
      for target in ["/hub1/messages/\(id)?\(query)", "/hub1/messages/other/errors?\(query)"] {
        let reply = await hub.send(.get, target, token: nil, host: "127.0.0.1")
        #expect(reply.status == .unauthorized)
      }
      await listener.stop()
    }
  }

  @Test("the errors of an unknown notification are 404")
  func unknownErrors() async throws {
    let hub = try await TestHub()
    #expect(await hub.send(.get, "/hub1/messages/x/errors").status == .notFound)
  }
}
