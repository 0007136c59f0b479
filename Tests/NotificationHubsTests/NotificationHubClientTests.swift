import Foundation
import Synchronization
import Testing

@testable import NotificationHubs

@Suite("Client of a hub")
struct NotificationHubClientTests {
  static let connection = ConnectionString(
    endpoint: ServiceEndpoint(host: "contoso.example"), keyName: "Full", key: "k")
  static let phone = Installation(
    installationID: "i-1", platform: .apns, pushChannel: .handle("0A1B"), tags: ["12345"])
  static let sent = TransportReply(
    status: 201,
    headers: [
      "location": "https://contoso.example/hub1/messages/n-1?api-version=2020-06",
      "trackingid": "t-1",
    ])

  static func client(
    _ transport: FakeTransport, retries: Int = 0, pauses: Pauses = Pauses()
  ) -> NotificationHubClient {
    NotificationHubClient(
      connectionString: connection, hub: "hub1", transport: transport,
      retry: RetryPolicy(retries: retries, jitter: { 0 }, sleep: { pauses.add($0) }))
  }

  final class Pauses: Sendable {
    private let list = Mutex<[Duration]>([])
    func add(_ pause: Duration) { list.withLock { $0.append(pause) } }
    var all: [Duration] { list.withLock { $0 } }
  }

  static func failure(_ body: () async throws -> Void) async -> NotificationHubError? {
    await #expect(throws: NotificationHubError.self) { try await body() }
  }

  @Test("every operation goes out as documented")
  func operations() async throws {
    let transport = FakeTransport(
      TransportReply(status: 200), TransportReply(status: 200, body: Data(Self.phone.hubJSON)),
      TransportReply(status: 200), TransportReply(status: 204))
    let client = Self.client(transport)
    try await client.createOrReplace(Self.phone)
    #expect(try await client.installation("i-1") == Self.phone)
    try await client.patch(installation: "i-1", [.addTag("a")])
    try await client.delete(installation: "i/1 ü")
    let requests = transport.requests
    #expect(requests.map(\.method) == ["PUT", "GET", "PATCH", "DELETE"])
    let base = "https://contoso.example/hub1/installations/"
    let urls = requests.map(\.url.absoluteString)
    #expect(urls[0] == base + "i-1?api-version=2020-06")
    #expect(urls[3] == base + "i%2F1%20%C3%BC?api-version=2020-06")
    #expect(requests[0].body == Self.phone.jsonData)
    #expect(requests[0].headers["Content-Type"] == "application/json;charset=utf-8")
    #expect(requests[2].headers["Content-Type"] == "application/json-patch+json")
    for request in requests {
      let token = try SharedAccessSignature(parsing: request.headers["Authorization"] ?? "")
      #expect(token.isSigned(with: "k") && token.keyName == "Full")
      #expect(token.covers(path: request.url.path, hosts: ["contoso.example"]))
      #expect(request.headers["User-Agent"]?.hasPrefix("NotificationHubs-Swift") == true)
    }
  }

  @Test("sends carry format, tags and headers; the receipt names the notification")
  func sending() async throws {
    let transport = FakeTransport(Self.sent, Self.sent, Self.sent)
    let client = Self.client(transport)
    let receipt = try await client.send(
      .template(["b": "2", "a": "\"1\""]), to: "12345" && !("x" || "y"))
    #expect(receipt.notificationID == "n-1")
    #expect(receipt.trackingID == "t-1")
    try await client.broadcast(
      .apple(
        #"{"aps":{"alert":"hi"}}"#,
        headers: .init(
          pushType: "alert", priority: 5, expiration: Date(timeIntervalSince1970: 99.9))))
    try await client.broadcast(.native(.wns, "<toast/>", headers: ["X-WNS-Type": "wns/toast"]))
    let requests = transport.requests
    #expect(
      requests[0].url.absoluteString == "https://contoso.example/hub1/messages?api-version=2020-06")
    #expect(requests[0].body == Data(#"{"a":"\"1\"","b":"2"}"#.utf8))
    #expect(requests[0].headers["ServiceBusNotification-Format"] == "template")
    #expect(requests[0].headers["ServiceBusNotification-Tags"] == "12345 && !(x || y)")
    #expect(requests[1].headers["ServiceBusNotification-Format"] == "apple")
    #expect(requests[1].headers["ServiceBusNotification-Tags"] == nil)
    #expect(requests[1].headers["apns-push-type"] == "alert")
    #expect(requests[1].headers["apns-priority"] == "5")
    #expect(requests[1].headers["apns-expiration"] == "99")
    #expect(requests[2].headers["ServiceBusNotification-Format"] == "windows")
    #expect(requests[2].headers["Content-Type"] == "application/xml")
    #expect(requests[2].headers["X-WNS-Type"] == "wns/toast")
  }

  @Test("a reply without Location gives a receipt without an id")
  func noLocation() async throws {
    let receipt = try await Self.client(FakeTransport(TransportReply(status: 201)))
      .broadcast(.template([:]))
    #expect(receipt.notificationID == nil && receipt.location == nil)
  }

  @Test("a hub at its limit of tags is full, and the key is not wrong")
  func quota() async throws {
    let envelope = ErrorEnvelope(code: 403, message: "QuotaExceeded: more", trackingID: "1a-2b")
    let reply = TransportReply(status: 403, body: Data(envelope.xml(at: Date()).utf8))
    let error = await Self.failure {
      try await Self.client(FakeTransport(reply), retries: 3).delete(installation: "x")
    }
    #expect(error?.kind == .quotaExceeded && error?.detail == "QuotaExceeded: more")
  }

  @Test(
    "each status gets its kind, with detail and tracking id",
    arguments: [
      (400, NotificationHubError.Kind.badRequest), (401, .unauthorized), (403, .unauthorized),
      (404, .notFound), (405, .badRequest), (409, .conflict), (410, .gone),
      (412, .preconditionFailed), (413, .tooLarge), (429, .quotaExceeded), (500, .serverBusy),
      (503, .serverBusy), (302, .unexpectedReply),
    ])
  func errors(status: Int, kind: NotificationHubError.Kind) async throws {
    let envelope = ErrorEnvelope(code: status, message: "it is wrong", trackingID: "1a-2b")
    let body = Data(envelope.xml(at: Date()).utf8)
    let error = await Self.failure {
      try await Self.client(FakeTransport(TransportReply(status: status, body: body)))
        .delete(installation: "x")
    }
    #expect(error?.kind == kind)
    #expect(error?.status == status)
    #expect(error?.detail == "it is wrong")
    #expect(error?.trackingID == "1a-2b")
    let text = error.map { "\($0)" }
    // A hub that does not exist is refused like a key that is not its own.
    let hint = status == 401 ? " (a hub that does not exist answers the same)" : ""
    #expect(text == "\(kind) (status \(status)): it is wrong\(hint) [tracking id 1a-2b]")
  }

  @Test("an empty refusal takes its tracking id from the header")
  func emptyRefusal() async throws {
    let reply = TransportReply(status: 403, headers: ["TrackingId": "c0f4"])
    let error = await Self.failure {
      try await Self.client(FakeTransport(reply)).broadcast(.template([:]))
    }
    #expect(error?.kind == .unauthorized && error?.trackingID == "c0f4" && error?.detail == nil)
  }

  @Test("a busy server is tried three more times, each pause twice as long")
  func backoff() async throws {
    let pauses = Pauses()
    let transport = FakeTransport(
      TransportReply(status: 503), TransportReply(status: 500), TransportReply(status: 408),
      Self.sent)
    try await Self.client(transport, retries: 3, pauses: pauses).broadcast(.template([:]))
    #expect(pauses.all == [.milliseconds(800), .milliseconds(1600), .milliseconds(3200)])
    #expect(transport.requests.count == 4)
    let busy = FakeTransport(
      [TransportReply](repeating: TransportReply(status: 504), count: 9).map { .success($0) })
    let error = await Self.failure {
      try await Self.client(busy, retries: 3).broadcast(.template([:]))
    }
    #expect(error?.status == 504)
    #expect(busy.requests.count == 4)
  }

  @Test("Retry-After is obeyed, unless it asks too much", arguments: [403, 429, 503])
  func retryAfter(status: Int) async throws {
    let pauses = Pauses()
    let soon = TransportReply(status: status, headers: ["Retry-After": "7"])
    let transport = FakeTransport(soon, TransportReply(status: 204))
    try await Self.client(transport, retries: 3, pauses: pauses).delete(installation: "x")
    #expect(pauses.all == [.seconds(7)])
    let late = FakeTransport(TransportReply(status: status, headers: ["Retry-After": "3600"]))
    let error = await Self.failure {
      try await Self.client(late, retries: 3).delete(installation: "x")
    }
    #expect(error?.retryAfter == 3600)
    #expect(late.requests.count == 1)
  }

  @Test(
    "what is wrong for good is not tried again", arguments: [400, 401, 403, 404, 409, 429, 501])
  func noRetry(status: Int) async throws {
    let transport = FakeTransport(TransportReply(status: status))
    _ = await Self.failure {
      try await Self.client(transport, retries: 3).delete(installation: "x")
    }
    #expect(transport.requests.count == 1)
  }

  @Test("a server out of reach is tried again, then named in the error")
  func unreachable() async throws {
    let transport = FakeTransport([
      .failure(URLError(.timedOut)), .success(TransportReply(status: 204)),
    ])
    try await Self.client(transport, retries: 1).delete(installation: "x")
    let dead = FakeTransport()
    let error = await Self.failure {
      try await Self.client(dead, retries: 2).delete(installation: "x")
    }
    #expect(error?.kind == .unreachable && error?.status == nil)
    #expect(error?.detail?.contains("https://contoso.example") == true)
    #expect(dead.requests.count == 3)
  }

  @Test("after 401 the next call brings a new token")
  func refusedToken() async throws {
    let minted = Mutex(0)
    let tokens = TokenProvider {
      let number = minted.withLock {
        $0 += 1
        return $0
      }
      return SharedAccessSignature(
        resource: "https://h", keyName: "n\(number)", key: "k",
        expiresAt: Date(timeIntervalSinceNow: 600))
    }
    let transport = FakeTransport(
      TransportReply(status: 204), TransportReply(status: 401), TransportReply(status: 204))
    let client = NotificationHubClient(
      endpoint: ServiceEndpoint(host: "h", port: 8080, usesTLS: false), hub: "a/b", tokens: tokens,
      transport: transport, retry: .none)
    try await client.delete(installation: "x")
    _ = await Self.failure { try await client.delete(installation: "x") }
    try await client.delete(installation: "x")
    #expect(minted.withLock { $0 } == 2)
    let url = transport.requests.first?.url.absoluteString
    #expect(url == "http://h:8080/a/b/installations/x?api-version=2020-06")
  }

  @Test("a cancelled task ends with a cancellation error")
  func cancellation() async throws {
    let transport = FakeTransport()
    let client = Self.client(transport, retries: 3)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await client.delete(installation: "x")
    }
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("a reply that is no installation, or no telemetry, is an error")
  func unreadableReplies() async throws {
    let error = await Self.failure {
      _ = try await Self.client(FakeTransport(TransportReply(status: 200))).installation("x")
    }
    #expect(error?.kind == .unexpectedReply)
    let other = await Self.failure {
      _ = try await Self.client(FakeTransport(TransportReply(status: 200))).telemetry(of: "x")
    }
    #expect(other?.kind == .unexpectedReply)
  }

  @Test("no header can be smuggled in with a tag")
  func headerInjection() async throws {
    let transport = FakeTransport()
    let error = await Self.failure {
      try await Self.client(transport).send(.template([:]), to: "a\r\nX-Evil: 1")
    }
    #expect(error?.kind == .badRequest)
    #expect(transport.requests.isEmpty)
  }

  @Test("the sample of the README runs")
  func readMeSample() async throws {
    let transport = FakeTransport(
      TransportReply(status: 200), TransportReply(status: 200), Self.sent,
      TransportReply(status: 200, body: Data(WireDocumentTests.document.utf8)))
    let telemetry = try await ReadMeSample.helloWorld(
      connectionString: ConnectionStringTests.text, deviceToken: "0a0B",
      installationID: "i-1", transport: transport)
    #expect(telemetry.notificationID == "n-1")
    #expect(transport.requests.map(\.method) == ["PUT", "PATCH", "POST", "GET"])
    let put = try #require(transport.requests.first?.body)
    #expect(try Installation(jsonData: put).pushChannel == .handle("0A0B"))
    let other = FakeTransport(Self.sent)
    _ = try await ReadMeSample.typedPayload(client: Self.client(other))
    #expect(other.requests.first?.headers["ServiceBusNotification-Format"] == "apple")
  }

  @Test("waiting for the end asks again until the state is final, or the time is over")
  func finalTelemetry() async throws {
    func reply(_ state: String) -> TransportReply {
      let text = WireDocumentTests.document.replacing(
        "<State>Completed</State>", with: "<State>\(state)</State>")
      return TransportReply(status: 200, body: Data(text.utf8))
    }
    let transport = FakeTransport(reply("Enqueued"), reply("Processing"), reply("Completed"))
    var seen: [NotificationTelemetry.State] = []
    let last = try await Self.client(transport).finalTelemetry(of: "n-1") { seen.append($0.state) }
    #expect(last.state == .completed)
    #expect(seen == [.enqueued, .processing])
    let slow = FakeTransport(reply("Enqueued"), reply("Processing"), reply("Completed"))
    let early = try await Self.client(slow).finalTelemetry(of: "n-1", within: .milliseconds(20))
    #expect(early.state == .processing)
  }

  @Test("a receipt without an id has no telemetry, and says so")
  func noReceipt() async throws {
    let client = Self.client(FakeTransport(TransportReply(status: 201)))
    let receipt = try await client.send(.template(["a": "b"]), to: "news")
    let error = await #expect(throws: NotificationHubError.self) {
      try await client.finalTelemetry(of: receipt)
    }
    #expect(error?.localizedDescription.contains("no id") == true)
  }

  @Test("a refused key says which right it lacks, also where an app shows only the description")
  func missingRight() async throws {
    func refusal(_ call: (NotificationHubClient) async throws -> Void) async -> String {
      let client = Self.client(FakeTransport(TransportReply(status: 403)))
      do { try await call(client) } catch {
        return error.localizedDescription
      }
      return "no error"
    }
    let sent = await refusal { try await $0.send(.template(["a": "b"]), to: "news") }
    #expect(sent == "unauthorized (status 403): this key lacks the right Send")
    let read = await refusal { _ = try await $0.installation("i") }
    #expect(read.hasSuffix("lacks the right Listen"))
    let listed = await refusal { _ = try await $0.registrations(tag: "news").all() }
    #expect(listed.hasSuffix("lacks the right Manage"))
    let error: any Error = NotificationHubError(reply: TransportReply(status: 403), right: "Send")
    #expect((error as? any LocalizedError)?.recoverySuggestion?.contains("Send") == true)
  }

  @Test("each further try is told, with what failed and the pause before it")
  func reported() async throws {
    let told = Mutex<[Duration]>([])
    let retry = RetryPolicy(
      jitter: { 0 }, report: { _, pause in told.withLock { $0.append(pause) } }, sleep: { _ in })
    let client = NotificationHubClient(
      connectionString: try ConnectionString(ConnectionStringTests.text), hub: "h",
      transport: FakeTransport(), retry: retry)
    await #expect(throws: NotificationHubError.self) { try await client.telemetry(of: "x") }
    #expect(
      told.withLock { $0 } == [.milliseconds(800), .milliseconds(1600), .milliseconds(3200)])
  }

  @Test(
    "a device token that is not hexadecimal is refused before anything is sent",
    arguments: ["", "abc", "xy", "0a 0b"])
  func badToken(_ text: String) {
    #expect(throws: WireFormatError.self) { try PushChannel.apns(hexToken: text) }
  }
}
