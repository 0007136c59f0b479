import Foundation
import NotificationHubs
import Testing

// The samples of docs/guides/swift-server.md and swift-app.md, compiled; those about tests run.
// `DocumentationTests` compares them with the pages.

/// A hub that answers what a test says, and keeps what it was asked.
actor FakeHub: HTTPTransport {
  private(set) var requests: [TransportRequest] = []
  private var replies: [TransportReply]

  init(_ replies: TransportReply...) { self.replies = replies }

  func send(_ request: TransportRequest) throws -> TransportReply {
    requests.append(request)
    guard !replies.isEmpty else { throw URLError(.cannotConnectToHost) }
    return replies.removeFirst()
  }
}

/// The messages to send again later.
actor Outbox {
  private(set) var orders: [Int: Int] = [:]
  func keep(_ order: Int, for seconds: Int) { orders[order] = seconds }
}

struct Shop: Sendable {
  let client: NotificationHubClient
  let outbox = Outbox()

  func shipped(order: Int, to user: String) async throws {
    do {
      try await client.send(
        .template(["message": "Order \(order) is on its way."]), to: .user(user),
        idempotencyKey: "order-\(order)-shipped")
    } catch let error as NotificationHubError {
      switch error.kind {
      case .quotaExceeded, .serverBusy, .unreachable:
        await outbox.keep(order, for: error.retryAfter ?? 60)
      default:
        throw error
      }
    }
  }
}

@Suite("A shop") struct ShopTests {
  private func shop(_ hub: FakeHub) throws -> Shop {
    let text = "Endpoint=sb://localhost:8080/;SharedAccessKeyName=test;SharedAccessKey=c2VjcmV0"
    return Shop(
      client: NotificationHubClient(
        connectionString: try ConnectionString(text), hub: "demo", transport: hub, retry: .none))
  }

  @Test("tells the customer, and only once")
  func tells() async throws {
    let hub = FakeHub(TransportReply(status: 201))
    try await shop(hub).shipped(order: 17, to: "ann")
    let request = try #require(await hub.requests.first)
    #expect(request.headers["ServiceBusNotification-Tags"] == "$UserId:{ann}")
    #expect(request.headers["Idempotency-Key"] == "order-17-shipped")
  }

  @Test("keeps an order for later while the hub is busy or away")
  func keeps() async throws {
    let busy = try shop(FakeHub(TransportReply(status: 429, headers: ["Retry-After": "7"])))
    try await busy.shipped(order: 17, to: "ann")
    #expect(await busy.outbox.orders == [17: 7])

    let away = try shop(FakeHub())
    try await away.shipped(order: 18, to: "ann")
    #expect(await away.outbox.orders == [18: 60])
  }
}

enum GuideSamples {
  static func connect() throws -> NotificationHubClient {
    let text = ProcessInfo.processInfo.environment["BELFRY_CONNECTION_STRING"] ?? ""
    let client = NotificationHubClient(
      connectionString: try ConnectionString(text), hub: "shop",
      retry: RetryPolicy(report: { error, pause in print("again in \(pause): \(error)") }))
    return client
  }

  static func register(
    _ client: NotificationHubClient, session: (user: String, topics: [NotificationHubs.Tag]),
    device: String,
    deviceToken: String
  ) async throws {
    let phone = try Installation(
      installationID: device, userID: session.user, platform: .apns,
      pushChannel: .apns(hexToken: deviceToken), tags: session.topics)
    try await client.createOrReplace(phone)
  }

  static func typed(_ client: NotificationHubClient) async throws {
    let alert = try APNsPayload(
      .init(alert: .init(title: "Order 17", body: "On its way."), badge: 1, sound: .standard),
      custom: ["order": 17], delivery: .init(collapseID: "order-17"))
    let message = try FCMMessage(
      data: ["order": "17"], notification: .init(title: "Order 17", body: "On its way."))
    try await client.send(PushNotification(alert), to: .user("ann"))
    try await client.send(PushNotification(message), to: .user("ann"))
  }

  static func preview(_ client: NotificationHubClient) async throws {
    let preview = try await client.preview(.template(["message": "Tea is here."]), to: "news")
    for problem in preview.problems where problem.isFatal {
      print("\(problem.devices) devices: \(problem.text)")
    }
  }

  static func schedule(_ client: NotificationHubClient) async throws {
    let reminder = try await client.schedule(
      .template(["message": "It waits at the counter."]), at: .now + 20 * 3600, to: .user("ann"))
    if let id = reminder.notificationID { try await client.cancel(scheduled: id) }
  }

  static func follow(_ client: NotificationHubClient, id: String) async throws {
    for try await progress in client.updates(of: id) {
      print("\(progress.done) of \(progress.audience ?? 0)")
    }
    for try await device in client.devices(of: id) {
      print(device.installationID ?? "", device.outcomeName, device.reason ?? "")
    }
    let why = try await client.explanation(of: id, installation: "ann-phone")
    print(why.text)
  }

  static func users(_ client: NotificationHubClient) async throws {
    for try await device in client.installations(.init(user: "ann")) {
      try await client.patch(installation: device.installationID, [.addTag("city:oslo")])
    }
    let erased = try await client.erase(user: "ann")
    print(erased.installations)
  }

  static func appClient(
    endpoint: ServiceEndpoint, fetchToken: @escaping @Sendable () async throws -> String
  ) -> NotificationHubClient {
    let tokens = TokenProvider { try SharedAccessSignature(parsing: await fetchToken()) }
    let client = NotificationHubClient(
      endpoint: endpoint, hub: "shop", tokens: tokens, retry: .none)
    return client
  }

  static func appRegister(
    _ client: NotificationHubClient, installationID: String, deviceToken: Data,
    topics: [NotificationHubs.Tag]
  ) async throws {
    let phone = Installation(
      installationID: installationID, platform: .apns, pushChannel: .apns(deviceToken),
      expirationTime: .now + 90 * 86_400, tags: topics,
      templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)])
    try await client.createOrReplace(phone)
  }

  static func follows(
    _ client: NotificationHubClient, installationID: String
  ) async throws {
    try await client.patch(installation: installationID, [.addTag("news"), .removeTag("sport")])
  }

  static func signOut(_ client: NotificationHubClient, installationID: String) async throws {
    try await client.delete(installation: installationID)
  }

  static func show(
    _ client: NotificationHubClient, _ phone: Installation
  ) async throws -> (text: String, advice: String?)? {
    do {
      try await client.createOrReplace(phone)
    } catch is CancellationError {
      return nil
    } catch let error as NotificationHubError {
      return (error.localizedDescription, error.recoverySuggestion)
    }
    return nil
  }
}
