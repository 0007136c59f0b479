import HubCore
import NotificationHubs
import Wire

/// What FCM said to one push: the table's row, and what of the answer itself counts.
struct FCMVerdict: Sendable {
  let reply: FCMReply
  /// 0 when there was no answer.
  var status: UInt16 = 0
  /// FCM's word, or the transport's.
  var reason: String
  /// In seconds.
  var retryAfter: Int32?

  init(_ reply: FCMReply, reason: String? = nil) {
    self.reply = reply
    self.reason = reason ?? reply.reason
  }

  /// - Parameter now: In seconds since 1970.
  init(_ answer: LinkReply, now: Int64) {
    switch answer.trouble {
    case .unreachable(let reason): self.init(.unreachable, reason: reason)
    case .refusedAddress:
      self.init(.unreachable, reason: "FCM's name leads to an address that is not allowed")
    case nil:
      self.init(status: answer.status, body: answer.body)
      retryAfter = answer.retryAfter.flatMap { RetryAfter.seconds($0, now: now) }
    }
  }

  init(status: UInt16, body: ArraySlice<UInt8>) {
    if (200...299).contains(status) {
      self.init(.success)
    } else {
      let error = FCMError(body)
      let row = error.flatMap(Self.row) ?? FCMReply.row(status: status)
      self.init(row, reason: error?.word ?? "status \(status)")
    }
    self.status = status
  }

  /// By the detail's word, then by the error's (spec `pns/fcm-v1.md` section 4).
  private static func row(_ error: FCMError) -> FCMReply? {
    if let code = error.errorCode, let row = FCMReply.row(errorCode: code) { return row }
    if error.errorCode == invalidArgument || error.status == invalidArgument {
      return argument(error)
    }
    return error.status.flatMap(FCMReply.row(statusWord:))
  }

  private static let invalidArgument = "INVALID_ARGUMENT"

  /// The one place where FCM's prose decides: a bad token, a message too large, or another fault.
  /// In doubt the handle stays.
  private static func argument(_ error: FCMError) -> FCMReply {
    let text = error.message.lowercased()
    let fields = error.violations
    let isSize =
      text.contains("too big") || text.contains("too large") || text.contains("too long")
      || fields.contains { $0.description.lowercased().contains("too big") }
    if isSize { return .tooLarge }
    if fields.contains(where: { $0.field == "message.token" || $0.field == "message.fid" }) {
      return .badToken
    }
    if error.errorCode == invalidArgument, fields.isEmpty,
      text.contains("registration token") || text.contains("installation id")
    {
      return .badToken
    }
    return .badArgument
  }

  /// A 429 without Retry-After: the least pause that Google asks for, in seconds.
  private static let leastPauseWhenThrottled: Int32 = 60

  /// What the hub is told. What is left to do when the gateway has done its own part: after a fresh
  /// token that was refused as well, the credential is wrong.
  var result: PushResult {
    let advice: RetryAdvice =
      switch reply.retry {
      case .none, .never, .fix: .final
      case .backoff, .newConnection: .backoff
      case .refreshOnce, .pauseCredential: .pauseCredential
      }
    var result = PushResult(
      outcome: reply.outcome, handle: reply.handle == .remove ? .remove : .keep, retry: advice,
      status: status, reason: reply == .success ? nil : reason, retryAfter: retryAfter)
    if reply == .quotaExceeded { result.leastPause = Self.leastPauseWhenThrottled }
    return result
  }

  /// Whether every push with this credential would hear the same.
  var concernsCredential: Bool {
    reply.retry == .refreshOnce || reply.retry == .pauseCredential
  }
}

/// The error document of Google's services, as far as it decides anything.
struct FCMError: Sendable {
  let status: String?
  let message: String
  /// Of the detail `google.firebase.fcm.v1.FcmError`.
  let errorCode: String?
  /// Of the detail `google.rpc.BadRequest`.
  let violations: [(field: String, description: String)]

  /// The narrowest word, if it is one that may stand in a report.
  var word: String? {
    [errorCode, status].compactMap { $0 }.first { word in
      (1...64).contains(word.utf8.count)
        && word.utf8.allSatisfy { (0x41...0x5A).contains($0) || $0 == UInt8(ascii: "_") }
    }
  }

  /// - Returns: `nil` for what is no such document.
  init?(_ body: ArraySlice<UInt8>) {
    guard let error = (try? JSONValue.parse(body))?["error"] else { return nil }
    status = error["status"]?.scalarText
    message = error["message"]?.scalarText ?? ""
    var code: String?
    var found: [(field: String, description: String)] = []
    if case .array(let details)? = error["details"] {
      for detail in details {
        let type = detail["@type"]?.scalarText ?? ""
        if type.hasSuffix("google.firebase.fcm.v1.FcmError") {
          code = detail["errorCode"]?.scalarText
        } else if type.hasSuffix("google.rpc.BadRequest"),
          case .array(let violations)? = detail["fieldViolations"]
        {
          found += violations.map {
            ($0["field"]?.scalarText ?? "", $0["description"]?.scalarText ?? "")
          }
        }
      }
    }
    errorCode = code
    violations = found
  }
}
