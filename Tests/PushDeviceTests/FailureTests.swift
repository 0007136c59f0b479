import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

@Suite("Failures")
struct FailureTests {
  /// A device whose hub answers with an error, after the first attempt.
  private func device(_ error: RegistrarError) async -> (TestDevice, PushInstallation) {
    let device = TestDevice()
    device.hub.answer = .failure(error)
    let push = device.process()
    await push.didRegister(deviceToken: .token(1))
    await device.clock.advance(by: .seconds(1))
    return (device, push)
  }

  @Test("a hub that cannot be reached is asked after 2 s, 10 s, 1 min, 5 min and each 30 min")
  func unreachable() async throws {
    let (device, push) = await device(RegistrarError(.unreachable, "no route"))
    var expected = 1
    for delay in [2, 10, 60, 300, 1_800, 1_800] {
      let retryAt = device.clock.now.addingTimeInterval(TimeInterval(delay))
      let error = RegistrarError(.unreachable, "no route")
      #expect(await push.state == .failed(error, retryAt: retryAt))
      await device.clock.advance(by: .milliseconds(delay * 1_000 - 1))
      #expect(device.hub.attempts == expected)
      await device.clock.advance(by: .milliseconds(1))
      expected += 1
      #expect(device.hub.attempts == expected)
    }
    device.hub.answer = .success
    await push.didEnterForeground()
    await push.settled()
    await device.clock.advance(by: .seconds(1))
    #expect(await push.state.isSaved)
  }

  @Test("503 and 429 with Retry-After are not repeated before, not even by the foreground")
  func throttled() async throws {
    let (device, push) = await device(RegistrarError(status: 503, "", retryAfter: .seconds(30)))
    await push.didEnterForeground()
    await #expect(throws: RegistrarError.self) { try await push.synchronize() }
    await device.clock.advance(by: .seconds(29))
    #expect(device.hub.attempts == 1)
    device.hub.answer = .success
    // With the whole jitter, a fifth later.
    await device.clock.advance(by: .seconds(7))
    #expect(device.hub.attempts == 2)
  }

  @Test("an absurd Retry-After is a day at most, a negative one none")
  func absurdRetryAfter() async throws {
    let (device, _) = await device(
      RegistrarError(status: 429, "", retryAfter: .seconds(Int64.max)))
    await device.clock.advance(by: .seconds(86_400 * 6 / 5 + 1))
    #expect(device.hub.attempts == 2)
    device.hub.answer = .failure(RegistrarError(status: 429, "", retryAfter: .seconds(-5)))
    await device.clock.advance(by: .seconds(86_400 * 6 / 5 + 1))
    #expect(device.hub.attempts >= 3)
  }

  @Test("400 is not repeated until something changes, over launches too")
  func rejected() async throws {
    let (device, push) = await device(RegistrarError(status: 400, "faulty"))
    #expect(
      await push.state == .failed(RegistrarError(.rejected, "faulty"), retryAt: nil))
    await push.didEnterForeground()
    await push.settled()
    await device.clock.advance(by: .seconds(86_400))
    let later = await device.launch()
    #expect(device.hub.attempts == 1)
    device.hub.answer = .success
    try await later.insert("news")
    try await later.synchronize()
    #expect(device.hub.attempts == 2)
  }

  @Test("a tag that no hub accepts is told without a request")
  func invalidTag() async throws {
    let device = TestDevice()
    let push = await device.launch()
    try await push.insert("not a tag!")
    await #expect(throws: RegistrarError.self) { try await push.synchronize() }
    #expect(device.hub.attempts == 1)
    try await push.remove("not a tag!")
    try await push.synchronize()
  }

  @Test(
    "401, 403, 404 and 410 are tried again at the next foreground, change or launch only",
    arguments: [401, 403, 404, 410])
  func refused(status: Int) async throws {
    let (device, push) = await device(RegistrarError(status: status, ""))
    await device.clock.advance(by: .seconds(86_400 * 30))
    #expect(device.hub.attempts == 1)
    #expect(await push.state == .failed(RegistrarError(status: status, ""), retryAt: nil))
    await push.didEnterForeground()
    await push.settled()
    await device.clock.advance(by: .seconds(1))
    #expect(device.hub.attempts == 2)
    try await push.insert("news")
    await device.clock.advance(by: .seconds(1))
    #expect(device.hub.attempts == 3)
    device.hub.answer = .success
    _ = await device.launch()
    #expect(device.registered?.tagNames == ["news"])
  }

  @Test("an error of the app's own addition is tried again")
  func failingEnrichment() async throws {
    let device = TestDevice()
    let isReady = Flag()
    let push = device.process { _ in
      guard isReady.isSet else { throw CocoaError(.featureUnsupported) }
    }
    await push.didRegister(deviceToken: .token(1))
    await device.clock.advance(by: .seconds(1))
    #expect(await push.state.error != nil)
    isReady.isSet = true
    await device.clock.advance(by: .seconds(2))
    #expect(device.saves.count == 1)
    // With an earlier confirmation, too: the change must not wait for the weekly refresh.
    isReady.isSet = false
    await push.didRegister(deviceToken: .token(2))
    try await push.insert("news")
    await device.clock.advance(by: .seconds(1))
    #expect(await push.state.error != nil)
    isReady.isSet = true
    await device.clock.advance(by: .seconds(10))
    #expect(await push.state.isSaved)
    #expect(device.registered?.pushChannel == .apns(.token(2)))
    #expect(device.registered?.tagNames == ["news"])
  }

  @Test("an addition, or a request, that never ends is given up after a minute, and repeated")
  func endless() async throws {
    let device = TestDevice()
    let isEndless = Flag(true)
    let push = device.process { _ in
      if isEndless.isSet { try await Task.sleep(for: .seconds(86_400)) }
    }
    await push.didRegister(deviceToken: .token(1))
    await push.willLeaveForeground()
    // The time passes while the addition is under way.
    while device.clock.waiting == 0 { await Task.yield() }
    await device.clock.advance(by: .seconds(60))
    await push.settled()
    #expect(await push.state.error?.kind == .unreachable)
    isEndless.isSet = false
    device.hub.hold()
    await push.didEnterForeground()
    await push.willLeaveForeground()
    await device.hub.heldRequest()
    await device.clock.advance(by: .seconds(60))
    await push.settled()
    #expect(await push.state.error?.kind == .unreachable)
    device.hub.release()
    await push.didEnterForeground()
    await push.willLeaveForeground()
    await push.settled()
    #expect(await push.state.isSaved)
  }

  @Test("what waits for a request in the background waits for a limited time")
  func settledWithin() async throws {
    let device = TestDevice()
    let push = device.process()
    await push.didRegister(deviceToken: .token(1))
    device.hub.hold()
    await push.willLeaveForeground()
    await device.hub.heldRequest()
    async let settled: Void = push.settled(within: .seconds(20))
    // The request has a limit, too.
    while device.clock.waiting < 2 { await Task.yield() }
    await device.clock.advance(by: .seconds(20))
    await settled
    #expect(device.hub.attempts == 0)
    device.hub.release()
    await push.settled(within: .seconds(20))
    #expect(device.hub.attempts == 1)
  }

  @Test("a delay that the hub asks for holds over launches")
  func throttledOverLaunches() async throws {
    let device = TestDevice()
    device.hub.answer = .failure(RegistrarError(status: 429, "", retryAfter: .seconds(3_600)))
    for _ in 1...5 { _ = await device.launch() }
    #expect(device.hub.attempts == 1)
    let push = await device.launch()
    #expect(await push.state.error?.kind == .throttled)
    device.hub.answer = .success
    await device.clock.advance(by: .seconds(3_600 * 6 / 5))
    #expect(await push.state.isSaved)
    #expect(device.hub.attempts == 2)
  }

  @Test("a clock that is set forward or back makes no request loop, and no wait without end")
  func clockJumps() async throws {
    let device = TestDevice()
    _ = await device.launch()
    // Back by ten years: the confirmation lies in the future, one request makes it right.
    device.clock.step(by: -86_400 * 3_650)
    _ = await device.launch()
    _ = await device.launch()
    #expect(device.hub.attempts == 2)
    device.clock.step(by: 86_400 * 3_650)
    _ = await device.launch()
    _ = await device.launch()
    #expect(device.hub.attempts == 3)
    // Back by an hour while the next attempt is waited for.
    device.hub.answer = .offline
    let push = await device.launch(token: 2)
    device.clock.step(by: -3_600)
    device.hub.answer = .success
    await device.clock.advance(by: .seconds(60))
    #expect(device.registered?.pushChannel == .apns(.token(2)))
    #expect(await push.state.isSaved)
  }

  @Test(
    "jitter shortens a delay, to a second at least",
    arguments: [(0, 1.0), (0.75, 1.5), (1, 2.0)])
  func jitter(jitter: Double, delay: TimeInterval) async throws {
    let device = TestDevice()
    device.hub.answer = .offline
    let push = device.process(jitter: jitter)
    await push.didRegister(deviceToken: .token(1))
    await #expect(throws: RegistrarError.self) { try await push.synchronize() }
    guard case .failed(_, let retryAt) = await push.state else {
      Issue.record("it has not failed")
      return
    }
    #expect(retryAt == device.clock.now.addingTimeInterval(delay))
  }
}

/// A switch that a closure reads.
final class Flag: Sendable {
  private let storage: Locked<Bool>
  init(_ isSet: Bool = false) { storage = Locked(isSet) }
  var isSet: Bool {
    get { storage.withLock { $0 } }
    set { storage.withLock { $0 = newValue } }
  }
}
