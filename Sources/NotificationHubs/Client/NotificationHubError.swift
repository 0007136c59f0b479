import Wire

/// The error thrown by an operation on a hub.
public struct NotificationHubError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure; later versions may add more.
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    /// The kind in words, such as `not found`.
    public let description: String
    /// 400 and other rejections of the request itself.
    public static let badRequest = Kind(description: "bad request")
    /// 401, or 403 without `Retry-After`: the token is invalid or lacks the right.
    public static let unauthorized = Kind(description: "unauthorized")
    /// 404: no such hub, installation or notification.
    public static let notFound = Kind(description: "not found")
    /// 409: the request conflicts with the present state.
    public static let conflict = Kind(description: "conflict")
    /// 410: the resource no longer exists.
    public static let gone = Kind(description: "gone")
    /// 412: the resource does not match the etag.
    public static let preconditionFailed = Kind(description: "precondition failed")
    /// 413: the request is larger than 64 KB.
    public static let tooLarge = Kind(description: "too large")
    /// 429, 403 with `Retry-After`, or 403 with the word `QuotaExceeded`: a quota or rate is exhausted.
    public static let quotaExceeded = Kind(description: "quota exceeded")
    /// 408 or 5xx on every attempt.
    public static let serverBusy = Kind(description: "server busy")
    /// No reply on every attempt.
    public static let unreachable = Kind(description: "unreachable")
    /// A reply that this library does not understand.
    public static let unexpectedReply = Kind(description: "unexpected reply")
  }

  /// The kind of failure.
  public let kind: Kind
  /// The HTTP status; `nil` if there was no reply.
  public let status: Int?
  /// The explanation given by the hub or the system.
  public let detail: String?
  /// The id of the request in the hub's logs.
  public let trackingID: String?
  /// The delay in seconds that the hub asks for before the next attempt.
  public let retryAfter: Int?
  /// The right that the key's policy lacks: `Listen`, `Send` or `Manage`. Set only for a 403.
  public let missingRight: String?
  /// The error thrown by the transport; `nil` if there was a reply.
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

  /// The kind, status, detail and tracking id in one line.
  public var description: String {
    var text = kind.description
    if let status { text += " (status \(status))" }
    if let detail, !detail.isEmpty {
      text += ": \(detail)"
    } else if let missingRight {
      text += ": this key lacks the right \(missingRight)"
    }
    // The token is checked before the hub's existence, so that replies do not reveal which hubs
    // exist.
    if status == 401 { text += " (a hub that does not exist answers the same)" }
    if let trackingID { text += " [tracking id \(trackingID)]" }
    return text
  }
}

extension NotificationHubError {
  /// Creates the error for a reply that is not a success.
  /// - Parameter right: The right that the request needs.
  init(reply: TransportReply, right: String? = nil) {
    let envelope = ErrorEnvelope(xml: reply.body)
    let retryAfter = reply.retryAfter
    let kind = Self.kind(
      status: reply.status,
      isQuota: retryAfter != nil
        || envelope?.message.hasPrefix("QuotaExceeded") == true)
    self.init(
      kind: kind, status: reply.status,
      detail: Self.detail(envelope?.message, reply.header(WireName.reason)),
      trackingID: reply.header(WireName.trackingID) ?? envelope?.trackingID
        ?? reply.header(WireName.correlationID),
      retryAfter: retryAfter,
      missingRight: reply.status == 403 && kind == .unauthorized ? right : nil)
  }

  /// The reply's own message, followed by the reason that Belfry adds in a header.
  private static func detail(_ message: String?, _ reason: String?) -> String? {
    guard let reason, !reason.isEmpty else { return message }
    guard let message, !message.isEmpty else { return reason }
    return message.hasSuffix(" ") ? message + reason : "\(message) \(reason)"
  }

  private static func kind(status: Int, isQuota: Bool) -> Kind {
    switch status {
    case 401: .unauthorized
    case 403: isQuota ? .quotaExceeded : .unauthorized
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

  /// Whether a retry may succeed (docs/protocol/rest.md, section 1.7).
  var isWorthRetrying: Bool {
    switch status {
    case nil: kind == .unreachable
    case 403, 429: retryAfter != nil
    case 408, 500, 502, 503, 504: true
    default: false
    }
  }
}
