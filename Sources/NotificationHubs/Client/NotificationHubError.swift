import Wire

/// Why an operation on a hub failed.
public struct NotificationHubError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; a later version may add some.
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    public let description: String
    /// 400 and other refusals of what was sent: the request is at fault.
    public static let badRequest = Kind(description: "bad request")
    /// 401, or 403 without `Retry-After`: the token is not accepted, or lacks the right.
    public static let unauthorized = Kind(description: "unauthorized")
    /// 404: no such hub, installation or notification.
    public static let notFound = Kind(description: "not found")
    /// 409.
    public static let conflict = Kind(description: "conflict")
    /// 410.
    public static let gone = Kind(description: "gone")
    /// 412.
    public static let preconditionFailed = Kind(description: "precondition failed")
    /// 413: more than 64 KB.
    public static let tooLarge = Kind(description: "too large")
    /// 403 or 429 with `Retry-After`: a quota or rate is exhausted.
    public static let quotaExceeded = Kind(description: "quota exceeded")
    /// 408 or 5xx, on every try.
    public static let serverBusy = Kind(description: "server busy")
    /// No reply, on every try.
    public static let unreachable = Kind(description: "unreachable")
    /// A reply that this library does not understand.
    public static let unexpectedReply = Kind(description: "unexpected reply")
  }

  public let kind: Kind
  /// The HTTP status; `nil` without a reply.
  public let status: Int?
  /// What the hub, or the system, says is wrong.
  public let detail: String?
  /// What the hub's logs know the request by.
  public let trackingID: String?
  /// What the hub asks to wait before the next try, in seconds.
  public let retryAfter: Int?
  /// The right that the key's policy lacks: `Listen`, `Send` or `Manage`. Of a 403 only.
  public let missingRight: String?
  /// What the transport threw; `nil` when there was a reply.
  public let underlying: (any Error)?

  package init(
    kind: Kind, status: Int? = nil, detail: String? = nil, trackingID: String? = nil,
    retryAfter: Int? = nil, missingRight: String? = nil, underlying: (any Error)? = nil
  ) {
    self.kind = kind
    self.status = status
    self.detail = detail
    self.trackingID = trackingID
    self.retryAfter = retryAfter
    self.missingRight = missingRight
    self.underlying = underlying
  }

  public var description: String {
    var text = kind.description
    if let status { text += " (status \(status))" }
    if let detail, !detail.isEmpty {
      text += ": \(detail)"
    } else if let missingRight {
      text += ": this key lacks the right \(missingRight)"
    }
    // A token is checked before the hub, so that nobody learns which hubs there are.
    if status == 401 { text += " (a hub that does not exist answers the same)" }
    if let trackingID { text += " [tracking id \(trackingID)]" }
    return text
  }
}

extension NotificationHubError {
  /// What a reply that is no success means.
  /// - Parameter right: The right that the request asks for.
  init(reply: TransportReply, right: String? = nil) {
    let envelope = ErrorEnvelope(xml: reply.body)
    let retryAfter = reply.header(WireName.retryAfter).flatMap { Int($0.trimmingBlanks) }
    let kind = Self.kind(status: reply.status, retryAfter: retryAfter)
    self.init(
      kind: kind, status: reply.status,
      detail: Self.detail(envelope?.message, reply.header(WireName.reason)),
      trackingID: reply.header(WireName.trackingID) ?? envelope?.trackingID
        ?? reply.header(WireName.correlationID),
      retryAfter: retryAfter,
      missingRight: reply.status == 403 && kind == .unauthorized ? right : nil)
  }

  /// The right that a request below a hub asks for (docs/protocol/sas.md, section 5).
  ///
  /// - Parameters:
  ///   - path: The segments, the hub's first.
  ///   - hasFilter: `GET /registrations` of one device.
  static func right(_ method: String, _ path: [String], hasFilter: Bool) -> String {
    guard let start = path.dropFirst().firstIndex(where: resources.contains) else {
      return "Manage"
    }
    let isOne = path.count > start + 1
    switch path[start] {
    case "registrationids": return "Listen"
    case "installations", "registrations":
      let isOfDevice = hasFilter && path[start] == "registrations"
      return isOne || method == "POST" || isOfDevice ? "Listen" : "Manage"
    case "tags": return "Manage"
    case "channels": return path.last == "messages" ? "Send" : "Manage"
    default: return path.last == "explain" ? "Manage" : "Send"
    }
  }

  private static let resources: Set = [
    "installations", "registrations", "registrationids", "channels", "messages",
    "schedulednotifications", "statistics", "audience", "tags",
  ]

  /// The reply's own text, and what Belfry says beside it in a header.
  private static func detail(_ message: String?, _ reason: String?) -> String? {
    guard let reason, !reason.isEmpty else { return message }
    guard let message, !message.isEmpty else { return reason }
    return message.hasSuffix(" ") ? message + reason : "\(message) \(reason)"
  }

  private static func kind(status: Int, retryAfter: Int?) -> Kind {
    switch status {
    case 401: .unauthorized
    case 403: retryAfter == nil ? .unauthorized : .quotaExceeded
    case 404: .notFound
    case 408, 500...599: .serverBusy
    case 409: .conflict
    case 410: .gone
    case 412: .preconditionFailed
    case 413: .tooLarge
    case 429: .quotaExceeded
    case 400...499: .badRequest
    default: .unexpectedReply
    }
  }

  /// Whether another try may succeed (docs/protocol/rest.md, section 1.7).
  var isWorthRetrying: Bool {
    switch status {
    case nil: kind == .unreachable
    case 403, 429: retryAfter != nil
    case 408, 500, 502, 503, 504: true
    default: false
    }
  }
}
