import Foundation
import HubCore
import HubSimulation
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Gateways before simulated services", .timeLimit(.minutes(5)))
struct SimulatedServicesTests {
  private let stage = ServiceStage()
  private static let keyID = "KEY1000011"

  // MARK: APNs

  @Test("each push is taken once, under its own id and the key's name")
  func taken() async throws {
    let results = await (try await stage.apns()).deliver(.alerts(5))
    #expect(results.allSatisfy { $0.outcome == .success })
    let pushes = stage.services.pushes
    #expect(pushes.map(\.handle) == (1...5).map(PushBatch.token))
    #expect(Set(pushes.map(\.id)).count == 5)
    #expect(pushes.allSatisfy { $0.credential == Self.keyID && $0.node == 3 })
    #expect(pushes.allSatisfy { $0.body == Array(#"{"aps":{"alert":"hi"}}"#.utf8) })
  }

  @Test("a handle that is dead or was never known goes")
  func dead() async throws {
    stage.set(PushBatch.token(1), at: .apns, .dead(since: stage.world.now))
    stage.set(PushBatch.token(2), at: .apns, .unknown)
    let results = await (try await stage.apns()).deliver(.alerts(3))
    #expect(results.map(\.outcome) == [.expiredChannel, .badChannel, .success])
    #expect(results.map(\.handle) == [.remove, .remove, .keep])
  }

  @Test("a handle that was confirmed after its death stays")
  func confirmedLater() async throws {
    stage.set(PushBatch.token(1), at: .apns, .dead(since: stage.world.now - 60))
    var batch = PushBatch.alerts(0)
    let now = Int64(stage.world.now.timeIntervalSince1970 * 1000)
    batch.add(PushBatch.token(1), confirmedAt: now)
    #expect(await (try await stage.apns()).deliver(batch).map(\.handle) == [.keep])
  }

  @Test("a token of a clock that is wrong is refused by the true time", arguments: [-2.0, 2.0])
  func wrongClock(hours: Double) async throws {
    let gateway = try await stage.apns()
    stage.world.clock.step(by: hours * 3600)
    let results = await gateway.deliver(.alerts(2))
    #expect(results.map(\.retry) == [.pauseCredential, .pauseCredential])
    #expect(stage.services.calls.allSatisfy { !$0.isTaken })
    let word = hours < 0 ? "ExpiredProviderToken" : "InvalidProviderToken"
    #expect(results[0].reason == word)
    stage.world.clock.step(by: -hours * 3600)
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.success, .success])
  }

  @Test("a provider token serves for some 50 minutes of virtual time")
  func cached() async throws {
    let gateway = try await stage.apns()
    for _ in 0..<60 {
      #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.success, .success])
      stage.world.clock.advance(by: .seconds(180))
    }
    let count = stage.services.with { $0.providerTokenCount(of: Self.keyID) }
    #expect((4...5).contains(count))
  }

  @Test("a key that is refused at one node pauses the credential there")
  func refusedAtOneNode() async throws {
    let gateway = try await stage.apns()
    stage.fault(.apns) { $0.refusesUntil = [3: .distantFuture] }
    #expect(await gateway.deliver(.alerts(1)).map(\.retry) == [.pauseCredential])
    stage.fault(.apns) { $0.refusesUntil = [4: .distantFuture] }
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
  }

  @Test("a wrong credential is refused; one that takes its place is not", arguments: Self.platforms)
  func wrongCredential(platform: PushPlatform, handle: String) async throws {
    let batch = PushBatch(to: handle, Self.body(platform))
    let wrong = await (try await stage.gateway(platform, .wrong)).deliver(batch)
    #expect(wrong.map(\.outcome) == [.invalidCredentials])
    #expect(stage.services.pushes.isEmpty)
    for kind in [SimulatedApp.Credential.first, .second] {
      let results = await (try await stage.gateway(platform, kind)).deliver(batch)
      #expect(results.map(\.outcome) == [.success])
    }
    #expect(stage.services.pushes.count == 2)
  }

  private static let platforms: [(PushPlatform, String)] = [
    (.apns, PushBatch.token(1)), (.fcmv1, "a:token"),
    (.wns, "https://db5.notify.windows.com/?token=AwYAAA"),
  ]

  private static func body(_ platform: PushPlatform) -> PushBody {
    switch platform {
    case .apns: PushBody(bytes: Array(#"{"aps":{"alert":"hi"}}"#.utf8))
    case .fcmv1: FCMBench.body
    default: WNSGatewayTests.toast
    }
  }

  @Test("throttling is passed on, with its time or without", arguments: [7, nil])
  func throttled(retryAfter: Int?) async throws {
    let end = stage.world.now + 60
    stage.fault(.apns) { $0.throttle = .init(until: end, retryAfter: retryAfter) }
    let gateway = try await stage.apns()
    let result = await gateway.deliver(.alerts(1))[0]
    #expect(result.outcome == .channelThrottled)
    #expect(result.retryAfter == retryAfter.map(Int32.init))
    stage.world.clock.advance(by: .seconds(61))
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
  }

  @Test("after a reset the hub cannot know, and the repeat has the same id")
  func reset() async throws {
    let gateway = try await stage.apns()
    stage.fault(.apns) { $0.next = [.resetAfter] }
    #expect(await gateway.deliver(.alerts(1)).map(\.retry) == [.backoff])
    stage.fault(.apns) { $0.next = [.resetBefore] }
    #expect(await gateway.deliver(.alerts(1)).map(\.retry) == [.backoff])
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
    let pushes = stage.services.pushes
    #expect(pushes.map(\.isAnswered) == [false, true])
    #expect(Set(pushes.map(\.id)).count == 1)
  }

  @Test("what GOAWAY leaves unprocessed goes over another connection", arguments: 1...8)
  func goAway(seed: UInt64) async throws {
    let stage = ServiceStage(seed: seed)
    let gateway = try await stage.apns()
    _ = await gateway.deliver(.alerts(1))
    stage.fault(.apns) { $0.goAways = ["Shutdown"] }
    let results = await gateway.deliver(.alerts(20))
    #expect(results.allSatisfy { $0.outcome == .success })
    #expect(stage.services.pushes.count == 21)
  }

  @Test("a lost connection is replaced; whether its pushes were taken only the service knows")
  func lost() async throws {
    let gateway = try await stage.apns()
    _ = await gateway.deliver(.alerts(1))
    stage.fault(.apns) { $0.next = [.lostAfter] }
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.pnsUnreachable, .pnsUnreachable])
    #expect(stage.services.pushes.count == 2)
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.success, .success])
    stage.fault(.apns) { $0.unreachableUntil = [3: .distantFuture] }
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.pnsUnreachable])
    #expect(stage.services.calls.allSatisfy { $0.credential == Self.keyID })
  }

  @Test("a token that changes too soon ends its connection; another takes it")
  func changedTooSoon() async throws {
    let gateway = try await stage.apns()
    _ = await gateway.deliver(.alerts(1))
    stage.world.clock.step(by: -120)
    let results = await gateway.deliver(.alerts(2))
    #expect(results.allSatisfy { $0.reason == "TooManyProviderTokenUpdates" })
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.success, .success])
  }

  @Test("an answer that comes late is not heard, though the push was taken")
  func late() async throws {
    let gateway = try await stage.apns()
    stage.fault(.apns) { $0.next = [.late] }
    #expect(await gateway.deliver(.alerts(1)).map(\.reason) == ["no reply in time"])
    #expect(stage.services.pushes.map(\.isAnswered) == [false])
    #expect(await gateway.deliver(.alerts(1)).map(\.outcome) == [.success])
  }

  @Test("a service that hangs is given up after the reply's time")
  func hangs() async throws {
    let gateway = try await stage.apns()
    _ = await gateway.deliver(.alerts(1))
    let start = stage.world.now
    stage.fault(.apns) { $0.hangsUntil = start + 300 }
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.pnsUnreachable, .pnsUnreachable])
    #expect((30..<31).contains(stage.world.now.timeIntervalSince(start)))
    stage.services.with { $0.heal() }
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.success, .success])
  }

  @Test("a service that cannot be reached is tried again after a pause")
  func unreachable() async throws {
    let end = stage.world.now + 30
    stage.fault(.apns) { $0.unreachableUntil = [nil: end] }
    let gateway = try await stage.apns()
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.pnsUnreachable, .pnsUnreachable])
    stage.world.clock.advance(by: .seconds(60))
    #expect(await gateway.deliver(.alerts(2)).map(\.outcome) == [.success, .success])
  }

  @Test("a failing service is told from one that hangs", arguments: [500, 503])
  func failing(status: UInt16) async throws {
    let end = stage.world.now + 30
    stage.fault(.apns) { $0.failure = .init(until: end, status: status, retryAfter: 5) }
    let result = await (try await stage.apns()).deliver(.alerts(1))[0]
    #expect(result.outcome == (status == 503 ? .pnsUnavailable : .pnsServerError))
    #expect(result.retryAfter == 5)
  }

  // MARK: FCM

  @Test("FCM takes a message as the sender wrote it")
  func fcm() async throws {
    let gateway = try await stage.gateway(.fcmv1)
    stage.set("dead:token", at: .fcm, .dead(since: stage.world.now))
    var batch = PushBatch(bodies: [FCMBench.body])
    for handle in ["a:token", "dead:token", "b:token"] { batch.add(handle) }
    let results = await gateway.deliver(batch)
    #expect(results.map(\.outcome) == [.success, .badChannel, .success])
    #expect(stage.services.pushes.map(\.handle) == ["a:token", "b:token"])
    let body = FCMBench.body.bytes
    #expect(stage.services.pushes.allSatisfy { $0.body == body })
    #expect(stage.services.calls.count { $0.service == .fcmTokens } == 1)
  }

  @Test("a token endpoint that refuses pauses the credential until it takes it")
  func refusedAccount() async throws {
    stage.fault(.fcmTokens) { $0.refusesUntil = [nil: .distantFuture] }
    let gateway = try await stage.gateway(.fcmv1)
    let batch = PushBatch(to: "a:token", FCMBench.body)
    let result = await gateway.deliver(batch)[0]
    #expect(result.retry == .pauseCredential)
    #expect(result.reason == "invalid_grant")
    stage.services.with { $0.heal() }
    #expect(await gateway.deliver(batch).map(\.outcome) == [.success])
  }

  @Test("an access token that ended early is fetched anew, once")
  func revoked() async throws {
    let gateway = try await stage.gateway(.fcmv1)
    let batch = PushBatch(to: "a:token", FCMBench.body)
    _ = await gateway.deliver(batch)
    stage.services.with { $0.revokeAccessTokens() }
    #expect(await gateway.deliver(batch).map(\.outcome) == [.success])
    let statuses = stage.services.calls.map { "\($0.service) \($0.status)" }
    #expect(
      statuses == ["fcmTokens 200", "fcm 200", "fcm 401", "fcmTokens 200", "fcm 200"])
  }

  @Test("FCM's quota is passed on")
  func quota() async throws {
    let end = stage.world.now + 60
    stage.fault(.fcm) { $0.throttle = .init(until: end, retryAfter: 30) }
    let result = await (try await stage.gateway(.fcmv1)).deliver(
      PushBatch(to: "a:token", FCMBench.body))[0]
    #expect(result.outcome == .throttled)
    #expect(result.retryAfter == 30)
  }

  // MARK: WNS and Web Push

  @Test("WNS takes toasts, throttles, and knows channels that have ended")
  func wns() async throws {
    let gateway = try await stage.gateway(.wns)
    let channel = "https://db5.notify.windows.com/?token=AwYAAA"
    stage.set(channel + "dead", at: .wns, .dead(since: stage.world.now))
    var batch = PushBatch(bodies: [WNSGatewayTests.toast])
    for end in ["1", "dead", "2"] { batch.add(channel + end) }
    #expect(
      await gateway.deliver(batch).map(\.outcome) == [.success, .expiredChannel, .success])
    #expect(stage.services.pushes.map(\.handle) == [channel + "1", channel + "2"])
    let end = stage.world.now + 60
    stage.fault(.wns) { $0.throttle = .init(until: end, retryAfter: 9) }
    let throttled = await gateway.deliver(batch)
    #expect(throttled.first?.outcome == .throttled)
    #expect(throttled.first?.retryAfter == 9)
  }

  @Test("a push service of browsers takes messages, and knows subscriptions that are gone")
  func webPush() async throws {
    let browsers = try (0..<2).map {
      try FakeBrowser(endpoint: "https://updates.push.services.mozilla.com/wpush/v2/\($0)")
    }
    stage.set(browsers[1].endpoint, at: .webPush, .dead(since: stage.world.now))
    let results = await (try await stage.gateway(.browser)).deliver(
      try WebPushBench.batch(browsers))
    #expect(results.map(\.outcome) == [.success, .expiredChannel])
    #expect(stage.services.pushes.map(\.handle) == [browsers[0].endpoint])
  }

  @Test("equal worlds have equal lives")
  func repeatable() async throws {
    var lives: [[String]] = []
    for _ in 0..<2 {
      let stage = ServiceStage(seed: 7)
      stage.fault(.apns) {
        $0.next = [.late, .refused, .resetBefore]
        $0.goAways = ["Shutdown"]
      }
      let gateway = try await stage.apns()
      for _ in 0..<3 { _ = await gateway.deliver(.alerts(6)) }
      lives.append(
        stage.services.calls.map {
          "\($0.at.timeIntervalSince1970) \($0.handle) \($0.id) \($0.status) \($0.reason)"
        } + stage.world.lines)
    }
    #expect(lives[0] == lives[1])
  }
}
