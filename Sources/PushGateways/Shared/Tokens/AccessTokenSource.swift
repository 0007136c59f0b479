import Foundation
import HubCore
import Synchronization

/// The access token of one credential: fetched once for all who need it, renewed in time, and kept
/// in use while it is valid even if renewing fails (spec `pns/README.md` 3, rule 5).
final class AccessTokenSource: Sendable {
  typealias Answer = Result<AccessToken, AccessTokenFailure>

  private struct State {
    var token: AccessToken?
    /// When ``token`` is to be renewed.
    var renewAt = Date.distantPast
    /// The one fetch under way; all who come wait for it.
    var flight: Task<Answer, Never>?
  }

  /// How long after a failed renewal a token that is still valid is used without another try.
  private static let pause: TimeInterval = 30

  private let clock: HubClock
  private let margin: TimeInterval
  private let fetch: @Sendable () async -> Answer
  private let state = Mutex(State())

  /// - Parameters:
  ///   - margin: How long before its end a token is renewed; half its life if that is shorter.
  ///   - fetch: Asks the token service.
  init(clock: HubClock, margin: Duration, fetch: @escaping @Sendable () async -> Answer) {
    self.clock = clock
    self.margin = margin / .seconds(1)
    self.fetch = fetch
  }

  /// The token to send now.
  func current() async throws(AccessTokenFailure) -> AccessToken {
    let (ready, flight) = state.withLock { state -> (AccessToken?, Task<Answer, Never>?) in
      let now = clock.steady()
      if let token = state.token, now < token.expiresAt, now < state.renewAt { return (token, nil) }
      if let flight = state.flight { return (nil, flight) }
      let flight = Task { await self.renew() }
      state.flight = flight
      return (nil, flight)
    }
    if let ready { return ready }
    guard let flight else { throw AccessTokenFailure(.unreachable, "no token") }
    return try await flight.value.get()
  }

  /// The push service refused this token: the next call of ``current()`` fetches another, unless one
  /// is there already because somebody else was refused the same.
  func invalidate(_ refused: AccessToken) {
    state.withLock { state in
      if state.token == refused { state.token = nil }
    }
  }

  private func renew() async -> Answer {
    let answer = await fetch()
    return state.withLock { state in
      state.flight = nil
      let now = clock.steady()
      switch answer {
      case .success(let token):
        state.token = token
        let life = max(0, token.expiresAt.timeIntervalSince(now))
        state.renewAt = token.expiresAt - min(margin, life / 2)
      case .failure:
        guard let token = state.token, now < token.expiresAt else { break }
        state.renewAt = now + Self.pause
        return .success(token)
      }
      return answer
    }
  }
}
