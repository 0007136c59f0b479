import Foundation
import HTTPClient
import HubCore
import NotificationHubs
import Wire

/// A token endpoint of OAuth 2.0 (RFC 6749): one form goes out, one JSON document comes back.
struct TokenService: Sendable {
  let url: String
  let session: HTTPSession
  let clock: HubClock

  /// Asks for a token.
  ///
  /// 200 with a token is success; 400, 401 and 403 mean that the credential is not accepted; all
  /// else is not understood.
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
          .refused, Self.word(said) ?? "token service: status \(reply.status)",
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

  /// What may stand in a header (RFC 6750, section 2.1, taken widely).
  private static func isToken(_ text: String) -> Bool {
    (1...16_384).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  /// A number or its text, from 1 to a year; an hour where the service says nothing (RFC 6749,
  /// section 5.1 leaves it open).
  private static func seconds(_ value: JSONValue?) -> Int32? {
    guard let value else { return 3600 }
    guard let text = value.scalarText, let number = Double(text), number >= 1 else { return nil }
    return Int32(min(number, 365 * 86_400))
  }

  /// A reason is kept with the outcome and shown, so only a short plain word passes.
  private static func word(_ text: String?) -> String? {
    guard let text, (1...64).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    else { return nil }
    return text
  }
}
