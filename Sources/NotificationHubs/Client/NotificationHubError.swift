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
  /// What the transport threw; `nil` when there was a reply.
  public let underlying: (any Error)?

  package init(
    kind: Kind, status: Int? = nil, detail: String? = nil, trackingID: String? = nil,
    retryAfter: Int? = nil, underlying: (any Error)? = nil
  ) {
    self.kind = kind
    self.status = status
    self.detail = detail
    self.trackingID = trackingID
    self.retryAfter = retryAfter
    self.underlying = underlying
  }

  public var description: String {
    var text = kind.description
    if let status { text += " (status \(status))" }
    if let detail, !detail.isEmpty { text += ": \(detail)" }
    // A token is checked before the hub, so that nobody learns which hubs there are.
    if status == 401 { text += " (a hub that does not exist answers the same)" }
    if let trackingID { text += " [tracking id \(trackingID)]" }
    return text
  }
}

extension NotificationHubError {
  /// What a reply that is no success means.
  init(reply: TransportReply) {
    let envelope = ErrorEnvelope(xml: reply.body)
    let retryAfter = reply.header(WireName.retryAfter).flatMap { Int($0.trimmingBlanks) }
    self.init(
      kind: Self.kind(status: reply.status, retryAfter: retryAfter), status: reply.status,
      detail: envelope?.message,
      trackingID: reply.header(WireName.trackingID) ?? envelope?.trackingID
        ?? reply.header(WireName.correlationID),
      retryAfter: retryAfter)
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
