import HubCore
import NotificationHubs
import Wire

/// What a push service said to one push: the table's row, and what of the answer itself counts.
struct WebPushVerdict: Sendable {
  private(set) var reply: WebPushReply
  /// 0 when there was no answer.
  private(set) var status: UInt16 = 0
  /// The service's word, its status, or what happened on the way.
  private(set) var reason: String
  /// In seconds.
  private(set) var retryAfter: Int32?
  /// The service says that the subscription was made with another application server key.
  private(set) var isForeignKey = false

  init(_ reply: WebPushReply, reason: String? = nil) {
    self.reply = reply
    self.reason = reason ?? reply.reason
  }

  /// - Parameters:
  ///   - hadSuccess: Whether a service of this origin has taken a push with the same key lately: then
  ///     a key that does not fit is the subscription's trouble, not the credential's.
  ///   - now: In seconds since 1970.
  init(_ answer: LinkReply, hadSuccess: Bool, now: Int64) {
    switch answer.trouble {
    case .unreachable(let reason): self.init(.unreachable, reason: reason)
    case .refusedAddress:
      self.init(.notAllowed, reason: "the subscription's host has no address that is allowed")
    case nil:
      self.init(status: answer.status, body: answer.body)
      retryAfter = answer.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
      if isForeignKey { reply = hadSuccess ? .foreignSubscription : .forbidden }
    }
  }

  init(status: UInt16, body: ArraySlice<UInt8>) {
    self.init(.row(status: status), reason: "status \(status)")
    self.status = status
    guard !(200...299).contains(status) else { return }
    let said = try? JSONValue.parse(body)
    if let word = said?["reason"]?.scalarText, Self.isWord(word) {
      reason = word  // Apple
    } else if let number = said?["errno"]?.scalarText, Self.isWord(number) {
      reason = "status \(status), errno \(number)"  // Mozilla
    }
    isForeignKey =
      status == 400 && reason == "VapidPkHashMismatch"
      || status == 403 && Self.contains(body, "do not correspond")  // Google's prose
  }

  /// A reason is kept with the outcome and shown, so only a short plain word passes.
  private static func isWord(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count)
      && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  private static func contains(_ body: ArraySlice<UInt8>, _ text: String) -> Bool {
    String(decoding: body.prefix(2048), as: UTF8.self).contains(text)
  }

  /// What the hub is told.
  var result: PushResult {
    let advice: RetryAdvice =
      switch reply.retry {
      case .none, .never, .fix: .final
      case .backoff, .newConnection, .refreshOnce: .backoff
      case .pauseCredential: .pauseCredential
      }
    return PushResult(
      outcome: reply.outcome, handle: reply.handle == .remove ? .remove : .keep, retry: advice,
      status: status, reason: reply.outcome == .success ? nil : reason, retryAfter: retryAfter)
  }
}
