package import HubCore
package import NotificationHubs
import Synchronization

/// A push service of a test's own making: answers by a script, remembers what it got, and can be
/// held so that batches stay in flight.
package final class FakeGateway: PushGateway {
  /// One push as the service sees it.
  package struct Push: Hashable, Sendable {
    package let id: PushID
    package let handle: String
    package let body: String
    package let headers: [String: String]
    package let expiry: Int64?
  }

  private struct State {
    var pushes: [Push] = []
    var attempts: [PushID: Int] = [:]
    var isHeld = false
    var held: [CheckedContinuation<Void, Never>] = []
    var targetsInFlight = 0
    var mostTargetsInFlight = 0
    var batches: [Int] = []
    var watchers: [(batches: Int, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())
  private let answer: @Sendable (Push, Int) -> PushResult
  package let pool: GatewayPool?

  /// - Parameters:
  ///   - pool: The connections that all its hubs share; `nil` when it has none.
  ///   - answer: Gets the push and how often it has come, from 1.
  package init(
    pool: GatewayPool? = nil,
    answer: @escaping @Sendable (Push, Int) -> PushResult = { _, _ in .success }
  ) {
    self.pool = pool
    self.answer = answer
  }

  /// Everything that has arrived, in the order of arrival.
  package var pushes: [Push] { state.withLock { $0.pushes } }
  /// The sizes of all batches.
  package var batches: [Int] { state.withLock { $0.batches } }
  package var mostTargetsInFlight: Int { state.withLock { $0.mostTargetsInFlight } }

  /// From now on batches arrive but get no answer.
  package func hold() { state.withLock { $0.isHeld = true } }

  /// Answers what is held, and everything after.
  package func release() {
    let held = state.withLock { state in
      state.isHeld = false
      defer { state.held = [] }
      return state.held
    }
    for continuation in held { continuation.resume() }
  }

  /// Batches that have arrived and wait for their answer.
  package var heldBatches: Int { state.withLock { $0.held.count } }

  /// Answers the batch that has been held for longest.
  package func answerOldest() {
    state.withLock { $0.held.isEmpty ? nil : $0.held.removeFirst() }?.resume()
  }

  /// Returns once so many batches have arrived in all.
  package func arrived(batches count: Int) async {
    await withCheckedContinuation { continuation in
      let isReached = state.withLock { state in
        if state.batches.count >= count { return true }
        state.watchers.append((count, continuation))
        return false
      }
      if isReached { continuation.resume() }
    }
  }

  package func deliver(_ batch: PushBatch) async -> [PushResult] {
    let (results, watchers) = state.withLock { state in
      let results = batch.requests.map { request in take(request, of: batch, &state) }
      state.batches.append(batch.requests.count)
      state.targetsInFlight += batch.requests.count
      state.mostTargetsInFlight = max(state.mostTargetsInFlight, state.targetsInFlight)
      let reached = state.watchers.filter { $0.batches <= state.batches.count }
      state.watchers.removeAll { $0.batches <= state.batches.count }
      return (results, reached)
    }
    for watcher in watchers { watcher.continuation.resume() }
    await waitWhileHeld()
    state.withLock { $0.targetsInFlight -= batch.requests.count }
    return results
  }

  private func take(_ request: PushRequest, of batch: PushBatch, _ state: inout State)
    -> PushResult
  {
    let body = batch.bodies[Int(request.body)]
    let push = Push(
      id: request.id, handle: String(decoding: batch.handles[request.handle], as: UTF8.self),
      body: String(decoding: body.bytes, as: UTF8.self), headers: body.headers,
      expiry: body.expiry)
    state.pushes.append(push)
    state.attempts[push.id, default: 0] += 1
    return answer(push, state.attempts[push.id] ?? 1)
  }

  private func waitWhileHeld() async {
    await withCheckedContinuation { continuation in
      let isHeld = state.withLock { state in
        if state.isHeld { state.held.append(continuation) }
        return state.isHeld
      }
      if !isHeld { continuation.resume() }
    }
  }

  package func close() async {}
}

/// The push services of a test, one for each platform.
package struct FakeGateways: GatewayDirectory {
  private let gateways: [PushPlatform: FakeGateway]
  private let broken: Set<PushPlatform>

  /// - Parameter broken: Platforms whose credential cannot work.
  package init(_ gateways: [PushPlatform: FakeGateway], broken: Set<PushPlatform> = []) {
    self.gateways = gateways
    self.broken = broken
  }

  package func gateway(
    for credential: PushCredential, hub: Hub.ID
  ) async throws -> (any PushGateway)? {
    if broken.contains(credential.platform) { throw CredentialError("'KeyId' is missing") }
    return gateways[credential.platform]
  }
}
