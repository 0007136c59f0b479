import HTTP2
import HubCore
import NotificationHubs
import Wire

/// What APNs said to one push: the table's row, and what of the answer itself counts.
struct APNsVerdict: Sendable {
  let reply: APNsReply
  /// 0 when there was no answer.
  var status: UInt16 = 0
  /// Apple's word, or the transport's.
  var reason: String
  /// Since when APNs knows the token to be dead, in milliseconds since 1970.
  var deadSince: Int64?
  /// In seconds.
  var retryAfter: Int32?

  init(_ reply: APNsReply) {
    self.reply = reply
    reason = reply.reason
  }

  /// - Parameter body: Of an answer other than 200: `{"reason":"…","timestamp":…}`, or anything.
  init(status: UInt16, body: ArraySlice<UInt8>, retryAfter: Int32? = nil) {
    let said = Self.read(body)
    if status != 200, let word = said.reason {
      reply = APNsReply.row(reason: word) ?? Self.unknown(status)
      reason = word
    } else {
      reply = APNsReply.row(status: status)
      reason = "status \(status)"
    }
    self.status = status
    deadSince = said.timestamp
    self.retryAfter = retryAfter
  }

  private static func unknown(_ status: UInt16) -> APNsReply {
    (500...599).contains(status) ? .otherServerError : .otherClientError
  }

  /// - Parameters:
  ///   - goAway: What the connection was told, if it was: its reason explains streams that were not
  ///     processed.
  ///   - connectionError: Why the connection ended, for the reader of the outcome.
  init(failure: HTTP2Failure, goAway: HTTP2GoAway?, connectionError: HTTP2ConnectionError?) {
    switch failure {
    case .tlsRejectedCertificate: self.init(.certificateRejected)
    case .refused, .connectFailed:
      if let row = goAway.flatMap(Self.explanation(of:)) {
        self.init(row)
      } else if failure == .refused {
        self.init(.streamRefused)
      } else {
        self.init(.unreachable)
        reason = connectionError?.reason ?? reason
      }
    case .reset(code: Self.cancelCode): self.init(.streamRefused)
    case .reset(let code):
      self.init(.unreachable)
      reason = "the stream was reset with code \(code)"
    case .timedOut:
      self.init(.unreachable)
      reason = "no reply in time"
    case .connectionLost:
      self.init(.unreachable)
      reason = "the connection was lost before the reply"
    case .cancelled:
      self.init(.unreachable)
      reason = "stopped before the reply"
    }
  }

  /// For a pool that will not connect for now.
  init(unavailable error: HTTP2ConnectionError?) {
    self.init(error?.kind == .tlsRejectedCertificate ? .certificateRejected : .unreachable)
    reason = error?.reason ?? reason
  }

  /// RST_STREAM CANCEL (RFC 9113, section 7).
  private static let cancelCode: UInt32 = 8

  /// The row that a GOAWAY's debug data names, where it says what to do with what was not processed.
  private static func explanation(of goAway: HTTP2GoAway) -> APNsReply? {
    guard let word = read(goAway.debugData[...]).reason, let row = APNsReply.row(reason: word)
    else { return nil }
    switch row.retry {
    case .newConnection, .refreshOnce, .pauseCredential: return row
    case .none, .never, .fix, .backoff: return nil
    }
  }

  private static func read(_ body: ArraySlice<UInt8>) -> (reason: String?, timestamp: Int64?) {
    let said = body.withUnsafeBufferPointer { bytes -> (reason: String?, timestamp: Int64?)? in
      var scanner = JSONScanner(bytes)
      return try? read(&scanner)
    }
    return said ?? (nil, nil)
  }

  private static func read(
    _ scanner: inout JSONScanner
  ) throws(SyntaxFault) -> (reason: String?, timestamp: Int64?) {
    var said: (reason: String?, timestamp: Int64?) = (nil, nil)
    guard try scanner.next() == .objectStart else { return said }
    while let name = try scanner.nextMember() {
      let isReason = scanner.matches(name, "reason")
      let isTime = scanner.matches(name, "timestamp")
      switch scanner.peek() {
      case UInt8(ascii: "{"), UInt8(ascii: "["): try scanner.skipValue()
      default:
        switch try scanner.next() {
        case .string(let text) where isReason: said.reason = word(scanner.bytes[text.range])
        case .number(let digits) where isTime:
          said.timestamp = Int64(String(decoding: scanner.bytes[digits], as: UTF8.self))
        default: break
        }
      }
    }
    return said
  }

  /// A reason is kept with the outcome and shown, so only a short plain word passes.
  private static func word(_ bytes: some Collection<UInt8>) -> String? {
    guard (1...64).contains(bytes.count), bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      return nil
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension APNsVerdict {
  /// - Parameters:
  ///   - confirmedAt: When the handle was last confirmed, in milliseconds since 1970.
  ///   - isOwnTopic: Whether the topic was exactly the credential's own; that a handle does not fit
  ///     another one, or one with a suffix, says nothing against the handle.
  func result(confirmedAt: Int64, isOwnTopic: Bool) -> PushResult {
    PushResult(
      outcome: reply.outcome, handle: action(confirmedAt: confirmedAt, isOwnTopic: isOwnTopic),
      retry: advice, status: status, reason: reply == .success ? nil : reason,
      retryAfter: retryAfter)
  }

  private func action(confirmedAt: Int64, isOwnTopic: Bool) -> HandleAction {
    switch reply.handle {
    case .keep, .replace: .keep
    case .remove: reply == .notForTopic && !isOwnTopic ? .keep : .remove
    // `Unregistered` speaks of the topic; a caller can name any.
    case .removeIfOlder where reply == .unregistered && !isOwnTopic: .keep
    case .removeIfOlder: deadSince.map { confirmedAt < $0 } ?? true ? .remove : .keep
    }
  }

  /// What is left to do when the gateway has done its own part: after a fresh token that was
  /// refused as well, the credential is wrong.
  private var advice: RetryAdvice {
    switch reply.retry {
    case .none, .never, .fix: .final
    case .newConnection, .backoff: .backoff
    case .refreshOnce, .pauseCredential: .pauseCredential
    }
  }

  /// Whether every push of this connection would hear the same. (A push without an answer says
  /// nothing about the others while the connection lives.)
  var concernsConnection: Bool {
    switch reply.retry {
    case .newConnection, .refreshOnce, .pauseCredential: true
    case .none, .never, .fix, .backoff: reply == .tooManyTokenUpdates
    }
  }
}
