import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Synchronization
import Wire

/// An access token that a token service has issued for its push service.
struct AccessToken: Hashable, Sendable, CustomStringConvertible {
  /// Secret.
  let text: String
  /// In the time of ``HubClock/steady``.
  let expiresAt: Date

  /// A description without the token.
  var description: String { "access token until \(expiresAt)" }
}

/// The reason that there is no access token.
struct AccessTokenFailure: Error, Hashable, Sendable {
  enum Kind: Sendable {
    /// The token service does not accept the credential.
    case refused
    /// No connection to the token service, or no reply from it.
    case unreachable
    /// It replied with an error of its own, or without a token.
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

  /// The result of every push that needed the token (docs/protocol/push-services/README.md, section
  /// 3, last table).
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

/// The access token of one credential: fetched once for all callers, renewed in time, and used
/// while it is valid even if renewing fails (docs/protocol/push-services/README.md, section 3, rule
/// 5).
final class AccessTokenSource: Sendable {
  typealias Answer = Result<AccessToken, AccessTokenFailure>

  private struct State {
    var token: AccessToken?
    /// The time when ``token`` is to be renewed.
    var renewAt = Date.distantPast
    /// The one fetch in progress; all callers wait for it.
    var flight: Task<Answer, Never>?
  }

  /// Time after a failed renewal during which a valid token is used without another attempt.
  private static let pause: TimeInterval = 30

  private let clock: HubClock
  private let margin: TimeInterval
  private let fetch: @Sendable () async -> Answer
  private let state = Mutex(State())

  /// - Parameters:
  ///   - margin: Time before its expiry at which a token is renewed; half its lifetime if that is
  ///     shorter.
  ///   - fetch: Requests a token from the token service.
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

  /// Invalidates a token that the push service has refused: the next call of ``current()`` fetches
  /// another, unless one was already fetched because of the same refusal.
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

/// A token endpoint of OAuth 2.0 (RFC 6749): the request is a form, the reply a JSON document.
struct TokenEndpoint: Sendable {
  let url: String
  let session: any PushSession
  let clock: HubClock

  /// Requests a token.
  ///
  /// 200 with a token is success; 400, 401 and 403 mean that the credential is not accepted;
  /// everything else is not understood.
  func token(_ form: [(name: String, value: String)]) async -> AccessTokenSource.Answer {
    let call = HTTPCall(
      url: url,
      headers: [("Content-Type", PercentEncoding.formType), ("Accept", "application/json")],
      body: PercentEncoding.form(form))
    let reply: HTTPReply
    do throws(HTTPFailure) {
      reply = try await session.send(call)
    } catch {
      return .failure(AccessTokenFailure(.unreachable, "token service: \(error.description)"))
    }
    return answer(reply)
  }

  private func answer(_ reply: HTTPReply) -> AccessTokenSource.Answer {
    let body = try? JSONValue.parse(reply.body)
    let now = clock.now()
    switch reply.status {
    case 200:
      guard case .string(let text)? = body?["access_token"], Self.isToken(text),
        let seconds = Self.seconds(body?["expires_in"])
      else {
        return .failure(
          AccessTokenFailure(.notUnderstood, "token service: no token in its reply", status: 200))
      }
      return .success(AccessToken(text: text, expiresAt: clock.steady() + TimeInterval(seconds)))
    case 400, 401, 403:
      let said = body?["error"]?.scalarText ?? body?["reason"]?.scalarText
      return .failure(
        AccessTokenFailure(
          .refused, PushVerdict.word(said) ?? "token service: status \(reply.status)",
          status: reply.status))
    default:
      let retryAfter = reply["Retry-After"].flatMap {
        RetryAfter.seconds($0, now: Int64(now.timeIntervalSince1970))
      }
      return .failure(
        AccessTokenFailure(
          .notUnderstood, "token service: status \(reply.status)", status: reply.status,
          retryAfter: retryAfter))
    }
  }

  /// Whether a token has only characters allowed in a header (RFC 6750, section 2.1, interpreted
  /// liberally).
  private static func isToken(_ text: String) -> Bool {
    (1...16_384).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  /// A number or its text, from 1 to a year; an hour where the service gives none (RFC 6749,
  /// section 5.1 leaves it open).
  private static func seconds(_ value: JSONValue?) -> Int32? {
    guard let value else { return 3600 }
    guard let text = value.scalarText, let number = Double(text), number >= 1 else { return nil }
    return Int32(min(number, 365 * 86_400))
  }
}
