import Foundation
package import HubCore
import NotificationHubs

/// The push services of a life, in short: what they take, refuse and remember.
package final class PushServices: @unchecked Sendable {  // owner: the world's thread
  /// A push that a service has taken.
  package struct Push {
    let seconds: Double
    let platform: PushPlatform
    let handle: String
    let id: PushID
    /// The line of the plan that its message names.
    let line: Int?
    let text: String
    let place: Place
  }

  private struct Service {
    var throttled: (until: Double, retryAfter: Int) = (0, 0)
    var failing: (until: Double, status: Int) = (0, 0)
    var silentUntil = 0.0
    var forbiddenUntil = 0.0
    var slanderedUntil = 0.0
    /// Batches that lose their connection next, and whether they were done.
    var resets: [Bool] = []
  }

  private let world: World
  private let seed: UInt64
  private var services: [PushPlatform: Service] = [:]
  private(set) var dead: Set<String> = []
  private var replacements: [String: String] = [:]
  private(set) var pushes: [Push] = []
  var hasTaken: (Push) -> Void = { _ in }
  private var occasion: UInt64 = 0

  init(_ world: World, seed: UInt64) {
    self.world = world
    self.seed = seed
  }

  // MARK: What goes wrong

  func throttle(_ platform: PushPlatform, for seconds: Double, retryAfter: Int) {
    services[platform, default: .init()].throttled = (world.seconds + seconds, retryAfter)
  }

  func fail(_ platform: PushPlatform, for seconds: Double, status: Int) {
    services[platform, default: .init()].failing = (world.seconds + seconds, status)
  }

  func silence(_ platform: PushPlatform, for seconds: Double) {
    services[platform, default: .init()].silentUntil = world.seconds + seconds
  }

  func forbid(_ platform: PushPlatform, for seconds: Double) {
    services[platform, default: .init()].forbiddenUntil = world.seconds + seconds
  }

  func slander(_ platform: PushPlatform, for seconds: Double) {
    services[platform, default: .init()].slanderedUntil = world.seconds + seconds
  }

  func reset(_ platform: PushPlatform, isDone: Bool) {
    services[platform, default: .init()].resets.append(isDone)
  }

  func kill(_ handle: String) { dead.insert(handle) }

  func replace(_ handle: String, by new: String) { replacements[handle] = new }

  func heal() { services = [:] }

  // MARK: Deliveries

  func deliver(_ batch: PushBatch, _ credential: PushCredential, at place: Place) async
    -> [PushResult]
  {
    occasion += 1
    var draw = Draw(seed, UInt64(keyOf: "deliver"), occasion)
    await world.wait(draw.between(0.002, 0.04))
    let unreachable = PushResult(outcome: .pnsUnreachable, retry: .backoff)
    let lost = Array(repeating: unreachable, count: batch.requests.count)
    let service = services[credential.platform] ?? Service()
    if service.silentUntil > world.seconds {
      await world.wait(min(30, service.silentUntil - world.seconds))
      return lost
    }
    var isReset = false
    if let isDone = service.resets.first {
      services[credential.platform]?.resets.removeFirst()
      guard isDone else { return lost }
      isReset = true
    }
    let results = batch.requests.map { request in
      answer(
        request, String(decoding: batch.handles[request.handle], as: UTF8.self),
        batch.bodies[Int(request.body)], credential, service, at: place)
    }
    await world.wait(draw.between(0.002, 0.04))
    return isReset || world.isClosing ? lost : results
  }

  private func answer(
    _ request: PushRequest, _ handle: String, _ body: PushBody, _ credential: PushCredential,
    _ service: Service, at place: Place
  ) -> PushResult {
    if credential["Token"] == "wrong" || service.forbiddenUntil > world.seconds {
      return PushResult(
        outcome: .invalidCredentials, retry: .pauseCredential, status: 403,
        reason: "InvalidProviderToken")
    }
    if service.throttled.until > world.seconds {
      return PushResult(
        outcome: .throttled, retry: .backoff, status: 429, reason: "TooManyRequests",
        retryAfter: service.throttled.retryAfter > 0 ? Int32(service.throttled.retryAfter) : nil)
    }
    if service.failing.until > world.seconds {
      return PushResult(
        outcome: service.failing.status == 503 ? .pnsUnavailable : .pnsServerError,
        retry: .backoff, status: UInt16(service.failing.status))
    }
    if dead.contains(handle) || service.slanderedUntil > world.seconds {
      return PushResult(
        outcome: .expiredChannel, handle: .remove, status: 410, reason: "Unregistered")
    }
    let push = Push(
      seconds: world.seconds, platform: credential.platform, handle: handle, id: request.id,
      line: Self.line(body.bytes), text: String(decoding: body.bytes, as: UTF8.self), place: place)
    pushes.append(push)
    hasTaken(push)
    if let new = replacements[handle] {
      var result = PushResult.success
      result.handle = .replace
      result.newHandle = new
      return result
    }
    return .success
  }

  /// Messages carry the number of their line as `"line 17"`.
  static func line(_ body: [UInt8]) -> Int? {
    guard let start = body.firstRange(of: Array("\"line ".utf8)) else { return nil }
    let digits = body[start.upperBound...].prefix { (0x30...0x39).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self))
  }
}

/// One process's gateways to them.
package struct SimulatedGateways: GatewayDirectory {
  private struct Gateway: PushGateway {
    let services: PushServices
    let credential: PushCredential
    let place: Place

    func deliver(_ batch: PushBatch) async -> [PushResult] {
      await services.deliver(batch, credential, at: place)
    }

    func close() async {}
  }

  let services: PushServices
  let place: Place

  package func gateway(
    for credential: PushCredential, hub: Hub.ID
  ) async throws -> (any PushGateway)? {
    Gateway(services: services, credential: credential, place: place)
  }
}
