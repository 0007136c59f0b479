import Foundation
import HubCore
import NotificationHubs

/// What a token service gave us to show to its push service.
struct AccessToken: Hashable, Sendable, CustomStringConvertible {
  /// Secret.
  let text: String
  /// In the time of ``HubClock/steady``.
  let expiresAt: Date

  /// Without the token.
  var description: String { "access token until \(expiresAt)" }
}

/// Why there is no access token.
struct AccessTokenFailure: Error, Hashable, Sendable {
  enum Kind: Sendable {
    /// The token service does not accept the credential.
    case refused
    /// No connection to the token service, or no reply from it.
    case unreachable
    /// It answered with its own fault, or something that is no token.
    case notUnderstood
  }

  let kind: Kind
  /// The token service's word (`invalid_client`), its status, or the transport's.
  let reason: String
  /// The token service's HTTP status; 0 when there was no reply.
  var status: UInt16 = 0
  /// Its `Retry-After`, in seconds.
  var retryAfter: Int32?

  init(_ kind: Kind, _ reason: String, status: UInt16 = 0, retryAfter: Int32? = nil) {
    self.kind = kind
    self.reason = reason
    self.status = status
    self.retryAfter = retryAfter
  }

  /// What that means for every push that needed the token (spec `pns`, the rows "token …").
  var result: PushResult {
    let (outcome, retry): (NotificationOutcome, RetryAdvice) =
      switch kind {
      case .refused: (.invalidCredentials, .pauseCredential)
      case .unreachable: (.tokenProviderUnreachable, .backoff)
      case .notUnderstood: (.tokenProviderInterfaceError, .backoff)
      }
    return PushResult(
      outcome: outcome, retry: retry, status: status, reason: reason, retryAfter: retryAfter)
  }
}
