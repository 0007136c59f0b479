package import Cryptography
import Foundation
package import HubCore
import Synchronization

/// The JSON web token by which a team's key authenticates (docs/protocol/push-services/apns.md,
/// section 2.1): made once, shared by all connections of the key, renewed in time.
///
/// Signing takes microseconds and happens under the lock, so callers that need a new token at the
/// same moment get the same one.
package final class ProviderToken: Sendable {
  /// A token as it is sent.
  package struct Value: Hashable, Sendable, CustomStringConvertible {
    package let text: String
    /// In seconds since 1970.
    package let issuedAt: Int64

    /// A description without the token.
    package var description: String { "provider token of \(issuedAt)" }
  }

  private struct State {
    var value: Value?
    /// The time when ``value`` is replaced, in seconds since 1970.
    var renewAt: Int64 = 0
    /// The time until which no other token is made, in seconds since 1970.
    var frozenUntil: Int64 = 0
  }

  /// APNs accepts a token for an hour; it is renewed after 50 minutes, give or take 5.
  private static let lifetime: Int64 = 50 * 60
  private static let jitter: Double = 5 * 60
  /// A token of this age is replaced in any case, because APNs will soon refuse it.
  private static let utmostAge: Int64 = 59 * 60
  /// Interval at which APNs allows a connection's token to change.
  private static let updateInterval: Int64 = 20 * 60

  private let key: APNsCredential.SigningKey
  private let clock: HubClock
  private let random: HubRandom
  private let state = Mutex(State())

  /// - Parameter random: Drawn from once for each token, so that keys prepared together do not
  ///   renew together.
  package init(key: APNsCredential.SigningKey, clock: HubClock, random: HubRandom) {
    self.key = key
    self.clock = clock
    self.random = random
  }

  /// The token to send now.
  package func current() throws(CryptographyError) -> Value {
    let now = Int64(clock.now().timeIntervalSince1970)
    return try state.withLock { state throws(CryptographyError) in
      if let value = state.value, Self.isUsable(value, state, at: now) { return value }
      let value = Value(text: try sign(issuedAt: now), issuedAt: now)
      state.value = value
      state.renewAt = now + Self.lifetime + Int64((Self.jitter * (2 * random.unit() - 1)).rounded())
      return value
    }
  }

  private static func isUsable(_ value: Value, _ state: State, at now: Int64) -> Bool {
    // A clock that was set back makes the token one from the future, which APNs refuses.
    let age = now - value.issuedAt
    guard (-60..<utmostAge).contains(age) else { return false }
    return now < state.renewAt || now < state.frozenUntil
  }

  /// Invalidates a token that APNs has refused: the next call of ``current()`` makes another,
  /// unless one was already made because of the same refusal.
  package func invalidate(_ refused: Value) {
    let now = Int64(clock.now().timeIntervalSince1970)
    state.withLock { state in
      if state.value == refused, now >= state.frozenUntil { state.value = nil }
    }
  }

  /// Handles TooManyProviderTokenUpdates: the newest token is kept and no other is made for 20
  /// minutes.
  package func keepForNow() {
    let now = Int64(clock.now().timeIntervalSince1970)
    state.withLock { $0.frozenUntil = now + Self.updateInterval }
  }

  private func sign(issuedAt: Int64) throws(CryptographyError) -> String {
    // Ids and team are ten letters and digits, checked with the credential: nothing needs escaping.
    let header = #"{"alg":"ES256","kid":"\#(key.id)"}"#
    let claims = #"{"iss":"\#(key.team)","iat":\#(issuedAt)}"#
    return try CompactJWS.sign(
      header: Array(header.utf8), claims: Array(claims.utf8), with: key.key)
  }
}
