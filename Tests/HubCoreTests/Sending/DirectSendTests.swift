import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Direct sends", .timeLimit(.minutes(5)))
struct DirectSendTests {
  static let handleHeader = "ServiceBusNotification-DeviceHandle"

  static func batch(_ devices: String, notification: String = #"{"aps":{"alert":"hi"}}"#) -> [UInt8]
  {
    Array(
      """
      --b1\r
      Content-Type: application/json\r
      Content-Disposition: inline; name=notification\r
      \r
      \(notification)\r
      --b1\r
      Content-Type: application/json\r
      Content-Disposition: inline; name=devices\r
      \r
      \(devices)\r
      --b1--\r

      """.utf8)
  }

  static let multipart = ["Content-Type": #"multipart/mixed; boundary="b1""#]

  @Test("one device gets it, no matter who is registered")
  func oneDevice() async throws {
    let world = try await DispatchWorld()
    try await world.addDevices(0..<5)
    let dispatcher = try await world.started()
    let sent = try await world.service(dispatcher).sendDirect(
      hub: world.hub,
      headers: sendFields("apple", [Self.handleHeader: "0a1b", "apns-priority": "5"]),
      body: applePayload)
    let record = try await world.finished(sent, by: dispatcher)
    #expect(record.state == .completed)
    #expect(DispatchWorld.outcomes(record) == [.success: 1])
    let pushes = try #require(world.gateways[.apns]).pushes
    #expect(pushes.map(\.handle) == ["0A1B"])
    #expect(pushes.first?.headers["apns-priority"] == "5")
  }

  @Test("a browser's keys travel with its endpoint")
  func browser() async throws {
    let world = try await DispatchWorld([.browser: FakeGateway()])
    let dispatcher = try await world.started()
    let sent = try await world.service(dispatcher).sendDirect(
      hub: world.hub,
      headers: sendFields(
        "browser", [Self.handleHeader: "https://push.example/1", "P256DH": "key", "Auth": "salt"]),
      body: Array(#"{"title":"hi"}"#.utf8))
    _ = try await world.finished(sent, by: dispatcher)
    #expect(
      world.gateways[.browser]?.pushes.map(\.handle) == ["https://push.example/1\nkey\nsalt"])
  }

  @Test(
    "what a direct send cannot be is 400 and sends nothing",
    arguments: [
      ("apple", [:]), ("apple", [handleHeader: "  "]),
      ("template", [handleHeader: "0A"]),
      ("apple", [handleHeader: "0A", "ServiceBusNotification-Tags": "red"]),
      ("apple", [handleHeader: String(repeating: "A", count: 5000)]),
      ("browser", [handleHeader: "https://push.example/1", "P256DH": "key"]),
      ("browser", [handleHeader: "https://push.example/1", "Auth": "salt"]),
      ("baidu", [handleHeader: "1234"]), ("baidu", [handleHeader: "-1234"]),
      ("baidu", [handleHeader: "1234-"]),
    ])
  func refused(format: String, fields: [String: String]) async throws {
    let world = try await DispatchWorld()
    let service = world.service(try await world.started())
    let failure = await refusal {
      _ = try await service.sendDirect(
        hub: world.hub, headers: sendFields(format, fields), body: applePayload)
    }
    #expect(failure?.status == 400)
    #expect(failure?.message?.isEmpty == false)
    #expect(try await world.store.unfinishedNotifications().isEmpty)
  }

  @Test("a Baidu device is its user and its channel")
  func baidu() async throws {
    let world = try await DispatchWorld([.baidu: FakeGateway()])
    let dispatcher = try await world.started()
    let sent = try await world.service(dispatcher).sendDirect(
      hub: world.hub, headers: sendFields("baidu", [Self.handleHeader: "1234-5678"]),
      body: Array(#"{"title":"hi"}"#.utf8))
    _ = try await world.finished(sent, by: dispatcher)
    #expect(world.gateways[.baidu]?.pushes.map(\.handle) == ["1234-5678"])
  }

  @Test("a batch gives each handle one outcome; repeated ones are skipped")
  func batchOutcomes() async throws {
    let gateway = FakeGateway { push, _ in
      push.handle == "0B"
        ? PushResult(outcome: .badChannel, handle: .remove, status: 400, reason: "BadDeviceToken")
        : .success
    }
    let world = try await DispatchWorld([.apns: gateway])
    try await world.addDevices(0..<3)
    let dispatcher = try await world.started()
    let service = world.service(dispatcher)
    let sent = try await service.sendBatch(
      hub: world.hub, headers: sendFields("apple", Self.multipart),
      body: Self.batch(#"["0a","0b","0A","0c"]"#))
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 2, .badChannel: 1, .skipped: 1])
    #expect(Set(gateway.pushes.map(\.handle)) == ["0A", "0B", "0C"])
    // The number of a direct send's target is no registration's: nobody was removed.
    #expect(try await world.store.count(record.audience) == 3)
    let errors = try await service.notifications.errors(
      of: sent.id, hub: world.hub, after: 0, limit: 10)
    #expect(errors.feedback.map(\.pnsHandle) == ["0B"])
    #expect(errors.feedback.map(\.notificationSystemError) == ["BadChannel"])
    #expect(errors.feedback.map(\.registrationID) == [nil])
    #expect(errors.next == nil)
  }

  @Test("a batch of a thousand goes out in pages, and a crash repeats none that was recorded")
  func thousand() async throws {
    let world = try await DispatchWorld(pageSize: 100)
    let gateway = try #require(world.gateways[.apns])
    let handles = (0..<1000).map { String($0 + 4096, radix: 16) }
    let first = FakeGateway()
    let process = StoreHook()
    let crashed = world.dispatcher([.apns: first], process: process)
    try await crashed.start()
    let list = "[" + handles.map { "'\($0)'" }.joined(separator: ",") + "]"
    first.hold()
    let sent = try await world.service(crashed, store: world.store.seen(by: process))
      .sendBatch(
        hub: world.hub, headers: sendFields("apple", Self.multipart), body: Self.batch(list))
    await first.arrived(batches: 3)
    await process.die()

    let next = try await world.started()
    let record = try await world.finished(sent, by: next)
    #expect(DispatchWorld.outcomes(record) == [.success: 1000])
    let ids = Dictionary(first.pushes.map { ($0.handle, $0.id) }) { $1 }
    for push in gateway.pushes { #expect(ids[push.handle].map { $0 == push.id } ?? true) }
    #expect(Set(gateway.pushes.map(\.handle)) == Set(handles.map { $0.uppercased() }))
    first.release()
  }

  @Test("retries of a direct send find its handles again, also after a restart")
  func retries() async throws {
    let busy = FakeGateway { _, _ in
      PushResult(outcome: .pnsServerError, retry: .backoff, status: 500)
    }
    let world = try await DispatchWorld()
    let first = world.dispatcher([.apns: busy])
    try await first.start()
    let sent = try await world.service(first).sendBatch(
      hub: world.hub, headers: sendFields("apple", Self.multipart),
      body: Self.batch(#"["0a","0b"]"#))
    await world.clock.sleepers(1)
    await first.stop(within: .seconds(5))
    let second = try await world.started()
    let record = try await world.runningClock(for: second) {
      try await world.finished(sent, by: second)
    }
    #expect(DispatchWorld.outcomes(record) == [.success: 2])
    #expect(Set(world.gateways[.apns]?.pushes.map(\.handle) ?? []) == ["0A", "0B"])
  }

  @Test(
    "a batch that cannot be read is 400",
    arguments: [
      (batch("[]"), multipart), (batch(#"["a",""]"#), multipart), (batch(#"{"a":1}"#), multipart),
      (batch("[1]"), multipart), (batch(#"["a"]"#), ["Content-Type": "application/json"]),
      (batch(#"["a"]"#), ["Content-Type": "multipart/mixed; boundary=other"]),
      (batch(#"["a"]"#, notification: "no json"), multipart),
      (batch(#"["a\u0001"]"#), multipart), (Array("--b1--\r\n".utf8), multipart),
      (batch("[" + (0...1000).map { "\"\($0)\"" }.joined(separator: ",") + "]"), multipart),
    ])
  func badBatch(body: [UInt8], fields: [String: String]) async throws {
    let world = try await DispatchWorld()
    let service = world.service(try await world.started())
    let failure = await refusal {
      _ = try await service.sendBatch(
        hub: world.hub, headers: sendFields("apple", fields), body: body)
    }
    #expect(failure?.status == 400)
    #expect(try await world.store.unfinishedNotifications().isEmpty)
  }

  @Test("without strict limits a batch takes more than a thousand")
  func extended() async throws {
    let world = try await DispatchWorld(pageSize: 1000)
    let dispatcher = try await world.started()
    let sent = try await world.service(dispatcher, limits: .extended).sendBatch(
      hub: world.hub, headers: sendFields("apple", Self.multipart),
      body: Self.batch("[" + (0..<1500).map { "\"\($0)\"" }.joined(separator: ",") + "]"))
    let record = try await world.finished(sent, by: dispatcher)
    #expect(DispatchWorld.outcomes(record) == [.success: 1500])
  }

  @Test(
    "a native send of a format without a credential or a gateway says so for each device",
    arguments: PushPlatform.allCases, [false, true])
  func noGateway(platform: PushPlatform, hasCredential: Bool) async throws {
    let world = try await DispatchWorld([:], credentials: hasCredential ? [platform] : [])
    let dispatcher = try await world.started()
    var request = world.native(platform)
    request.isDirect = true
    let record = NotificationRecord(
      id: NotificationID(at: world.clock.now, random: .system), hub: world.hub.id, request: request,
      state: .enqueued, enqueuedAt: world.clock.now)
    _ = try await world.store.accept(
      Submission(record: record, targets: [DirectTarget(handle: "h", isDuplicate: false)]))
    await dispatcher.submit(record)
    let done = try await world.finished(record, by: dispatcher)
    #expect(done.state == .completed)
    // For what has ended no credential could help.
    let isRetired = platform == .mpns || platform == .gcm
    let outcome: NotificationOutcome =
      hasCredential || isRetired ? .pnsInterfaceError : .invalidCredentials
    #expect(DispatchWorld.outcomes(done) == [outcome: 1])
  }
}
