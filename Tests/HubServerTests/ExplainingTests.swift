import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Testing

@Suite("What became of a notification, device by device")
struct ExplainingTests {
  private static let title = #"{\"aps\":{\"alert\":\"{$(title) + ' ' + $(name)}\"}}"#

  private func put(_ id: String, _ hub: TestHub, tags: String, extra: String = "") async {
    let handle = id.utf8.map { String(format: "%02x", $0) }.joined()
    let reply = await hub.send(
      .put, "/hub1/installations/\(id)",
      body: #"{"installationId":"\#(id)","platform":"apns","pushChannel":"\#(handle)","#
        + #""tags":[\#(tags)],"templates":{"main":{"body":"\#(Self.title)"}}\#(extra)}"#)
    #expect(reply.status == .ok, "\(reply.text)")
  }

  private func send(
    _ hub: TestHub, tags: String, format: String = "template", query: String = "",
    body: String = #"{"title":"Hi"}"#
  ) async -> HTTPResponse {
    await hub.send(
      .post, "/hub1/messages\(query)",
      headers: [
        "ServiceBusNotification-Format": format, "ServiceBusNotification-Tags": tags,
        "Content-Type": "application/json",
      ], body: body)
  }

  private func accepted(
    _ hub: TestHub, tags: String, format: String = "template", body: String = #"{"title":"Hi"}"#
  ) async throws -> NotificationID {
    let reply = await send(hub, tags: tags, format: format, body: body)
    #expect(reply.status == .created, "\(reply.text)")
    let path = try #require(reply.headers["Location"]).split(separator: "?")[0]
    return NotificationID(rawValue: String(try #require(path.split(separator: "/").last)))
  }

  private func explain(
    _ hub: TestHub, _ id: NotificationID, _ query: String
  ) async throws -> NotificationExplanation {
    let reply = await hub.send(.get, "/hub1/messages/\(id.rawValue)/explain?\(query)")
    #expect(reply.status == .ok, "\(reply.text)")
    return try NotificationExplanation(json: Array(reply.text.utf8))
  }

  private func numbers(_ hub: TestHub) async throws -> [RegistrationID] {
    try await hub.store.registrations(
      .all, hub: 1, asOf: TestHub.now, after: 0, limit: 100
    ).registrations.map(\.number)
  }

  private func checkpoint(
    _ hub: TestHub, _ id: NotificationID, _ change: (inout Checkpoint) -> Void
  ) async throws {
    var checkpoint = Checkpoint(notification: id, hub: 1, at: TestHub.now)
    change(&checkpoint)
    try await hub.store.checkpoint(checkpoint)
  }

  @Test("the term that does not match is named, with the tree")
  func tags() async throws {
    try await withHub { hub in
      await put("i1", hub, tags: #""news""#)
      let id = try await accepted(hub, tags: "news && !muted && (oslo || rome)")
      let found = try await explain(hub, id, "installation=i1")
      #expect(found.verdict == .tagsDiffer)
      #expect(found.text.contains("oslo, rome"))
      let template = try #require(found.candidates.first { $0.template == "main" })
      let tree = try #require(template.expression)
      #expect(tree.parts.map(\.text) == ["news", "!muted", "oslo || rome"])
      #expect(tree.parts.map(\.holds) == [true, true, false])
      #expect(template.rendering?.payload == #"{"aps":{"alert":"Hi "}}"#)
      #expect(template.rendering?.missing == ["name"])
      #expect(found.candidates.first { $0.template == nil }?.verdict == .notAddressed)
    }
  }

  @Test("what the push service answered is told, and the next try")
  func answers() async throws {
    try await withHub { hub in
      await put("i1", hub, tags: #""news""#)
      let id = try await accepted(
        hub, tags: "news", format: "apple", body: #"{"aps":{"alert":"Hi"}}"#)
      #expect(try await explain(hub, id, "installation=i1").verdict == .waiting)
      let native = try await numbers(hub)[0]
      let due = TestHub.now.addingTimeInterval(60)
      try await checkpoint(hub, id) {
        $0.state = .processing
        $0.retries = [
          .init(
            registration: native, platform: .apns, attempts: 2, due: due,
            answer: .init(outcome: .throttled, status: 429, reason: "TooManyRequests"))
        ]
      }
      let retrying = try await explain(hub, id, "installation=i1")
      #expect(retrying.verdict == .retrying)
      #expect(retrying.text.contains("2 tries") && retrying.text.contains("429 TooManyRequests"))
      #expect(retrying.candidates.first { $0.template == nil }?.nextTry == due)
      try await checkpoint(hub, id) {
        $0.state = .completed
        $0.failures = [
          .init(
            registration: native, outcome: .expiredChannel, status: 410, reason: "Unregistered",
            attempts: 3)
        ]
        $0.settledRetries = [native]
      }
      let failed = try await explain(hub, id, "installation=i1")
      #expect(failed.verdict == .failed)
      #expect(failed.text.contains("410 Unregistered") && failed.text.contains("after 3 tries"))
      let name = try #require(failed.candidates.first { $0.template == nil }?.registrationID)
      #expect(try await explain(hub, id, "registration=\(name)").verdict == .failed)
    }
  }

  @Test("a push that this server refused itself is told as its own refusal, and the device stays")
  func refusedHere() async throws {
    try await withHub { hub in
      await put("i1", hub, tags: #""news""#)
      let id = try await accepted(
        hub, tags: "news", format: "apple", body: #"{"aps":{"alert":"Hi"}}"#)
      let native = try await numbers(hub)[0]
      func text(_ status: UInt16, _ reason: String) async throws -> String {
        try await checkpoint(hub, id) {
          $0.state = .completed
          $0.failures = [
            .init(
              registration: native, outcome: .badChannel, status: status, reason: reason,
              attempts: 0)
          ]
        }
        return try await explain(hub, id, "installation=i1").text
      }
      let refused = try await text(0, PushResult.refusedHere + "not allowed (setting webPushHosts)")
      #expect(refused.contains("refused by this server: not allowed (setting webPushHosts)"))
      #expect(refused.contains("the device stays") && !refused.contains("removes"), "\(refused)")
    }
  }

  @Test("a device that came later, and one that nobody knows, are told so")
  func absent() async throws {
    let hub = try await TestHub()
    await put("i1", hub, tags: #""news""#)
    let id = try await accepted(hub, tags: "news")
    await put("late", hub, tags: #""news""#)
    try await checkpoint(hub, id) {
      $0.cursor = 2
      $0.isAudienceRead = true
      $0.state = .completed
      $0.counts = [OutcomeKey(platform: .apns, isTemplate: true, outcome: .success): 1]
    }
    #expect(try await explain(hub, id, "installation=i1").verdict == .delivered)
    #expect(try await explain(hub, id, "installation=late").verdict == .tooLate)
    #expect(try await explain(hub, id, "installation=nobody").verdict == .noDevice)
    #expect(try await explain(hub, id, "registration=nobody").verdict == .noDevice)
  }

  @Test("kept outcomes are listed, narrowed and paged")
  func devices() async throws {
    try await withHub { hub in
      for number in 1...3 { await put("i\(number)", hub, tags: #""news""#) }
      let id = try await accepted(hub, tags: "news")
      let all = try await numbers(hub)
      try await checkpoint(hub, id) {
        $0.failures = all.enumerated().map { index, number in
          .init(
            registration: number, outcome: index % 2 == 0 ? .badChannel : .throttled,
            status: 400, reason: "Bad", attempts: 1)
        }
      }
      func page(_ query: String) async throws -> (HTTPResponse, [DeviceOutcome]) {
        let reply = await hub.send(.get, "/hub1/messages/\(id.rawValue)/devices\(query)")
        #expect(reply.status == .ok, "\(reply.text)")
        return (reply, try DeviceOutcomeList.decode(Array(reply.text.utf8)))
      }
      #expect(try await page("").1.count == all.count)
      let bad = try await page("?outcome=badchannel").1
      #expect(bad.map(\.outcome) == [.badChannel, .badChannel, .badChannel])
      #expect(bad[0].status == 400 && bad[0].reason == "Bad" && bad[0].attempts == 1)
      #expect(bad[0].time == TestHub.now)
      #expect(try await page("?installation=i2").1.count == 2)
      #expect(try await page("?platform=fcmv1").1.isEmpty)
      let (first, two) = try await page("?$top=4")
      #expect(two.count == 4)
      let token = try #require(first.headers["x-ms-continuationtoken"])
      #expect(try await page("?$top=4&continuationtoken=\(token)").1.count == 2)
    }
  }

  @Test(
    "a question that makes no sense is 400",
    arguments: [
      "devices?outcome=Sad", "devices?platform=pigeon", "devices?continuationtoken=!", "explain",
      "explain?installation=", "explain?installation=a&registration=b", "devices?$top=0",
    ])
  func nonsense(path: String) async throws {
    let hub = try await TestHub()
    let id = try await accepted(hub, tags: "news")
    let reply = await hub.send(.get, "/hub1/messages/\(id.rawValue)/\(path)")
    #expect(reply.status == .badRequest, "\(reply.text)")
  }

  @Test(
    "an unknown notification is 404", arguments: ["devices", "explain?installation=a", "progress"])
  func unknown(path: String) async throws {
    let hub = try await TestHub()
    #expect(await hub.send(.get, "/hub1/messages/none/\(path)").status == .notFound)
  }

  @Test("to explain takes the right to manage")
  func rights() async throws {
    let hub = try await TestHub()
    let token = TestHub.token(name: TestHub.listenName, key: TestHub.listenKey)
    for path in ["explain?installation=a", "devices", "progress"] {
      let reply = await hub.send(.get, "/hub1/messages/none/\(path)", token: token)
      #expect(reply.status == .forbidden)
    }
  }

  @Test(
    "a dry run counts, renders and finds what would fail, and keeps nothing")
  func dryRun() async throws {
    try await withHub { hub in
      for number in 1...5 { await put("i\(number)", hub, tags: #""news""#) }
      await put("vip", hub, tags: #""news""#, extra: #","pushVariables":{"name":"Ann"}"#)
      try await hub.store.putCredential(
        PushCredential(platform: .apns, properties: [:], modifiedAt: TestHub.now), hub: 1)
      let reply = await send(hub, tags: "news", query: "?dry-run")
      #expect(reply.status == .ok, "\(reply.text)")
      let preview = try SendPreview(json: Array(reply.text.utf8))
      #expect(preview.devices == 6 && preview.examined == 6)
      #expect(preview.shares == [.init(platform: .apns, devices: 6, duplicates: 0)])
      #expect(preview.problems.map(\.code) == ["missing-property"])
      #expect(preview.problems.map(\.devices) == [5])
      #expect(preview.samples.first?.rendering.payload == #"{"aps":{"alert":"Hi "}}"#)
      #expect(preview.properties == ["name": 6, "title": 6])
      let long = String(repeating: "x", count: 5_000)
      let large = await send(hub, tags: "news", query: "?dry-run", body: #"{"title":"\#(long)"}"#)
      let problems = try SendPreview(json: Array(large.text.utf8)).problems
      #expect(problems.first?.code == "too-large" && problems.first?.devices == 6)
      #expect(try await hub.store.unfinishedNotifications().isEmpty)
    }
  }

  @Test("a missing credential shows in a dry run, and a wrong body is refused as by a send")
  func dryRunFaults() async throws {
    let hub = try await TestHub()
    await put("i1", hub, tags: #""news""#)
    let reply = await send(
      hub, tags: "news", format: "apple", query: "?dry-run", body: #"{"aps":{}}"#)
    let preview = try SendPreview(json: Array(reply.text.utf8))
    #expect(preview.problems.map(\.code) == ["no-credential"])
    #expect(await send(hub, tags: "news", query: "?dry-run", body: "[]").status == .badRequest)
    #expect(await send(hub, tags: "(", query: "?dry-run").status == .badRequest)
  }

  @Test("dry-run where there is none is refused and does not send")
  func dryRunElsewhere() async throws {
    let hub = try await TestHub()
    let reply = await hub.send(
      .post, "/hub1/schedulednotifications?dry-run",
      headers: [
        "ServiceBusNotification-Format": "apple",
        "ServiceBusNotification-ScheduleTime": "2030-01-06T10:00:00Z",
      ], body: #"{"aps":{}}"#)
    #expect(reply.status == .badRequest)
    #expect(try await hub.store.nextSchedule() == nil)
  }

  @Test("progress tells the audience, what is done and what waits")
  func progress() async throws {
    try await withHub { hub in
      for number in 1...3 { await put("i\(number)", hub, tags: #""news""#) }
      let id = try await accepted(hub, tags: "news")
      try await checkpoint(hub, id) {
        $0.state = .processing
        $0.counts = [
          OutcomeKey(platform: .apns, isTemplate: true, outcome: .success): 1,
          OutcomeKey(platform: .apns, isTemplate: true, outcome: .badChannel): 1,
        ]
        $0.retries = [.init(registration: 6, platform: .apns, attempts: 1, due: TestHub.now)]
      }
      let reply = await hub.send(.get, "/hub1/messages/\(id.rawValue)/progress")
      let progress = try NotificationProgress(json: Array(reply.text.utf8))
      #expect(progress.audience == 3 && progress.done == 2 && progress.retrying == 1)
      #expect(progress.succeeded == 1 && progress.failed == 1)
      #expect(progress.state == .processing)
    }
  }
}
