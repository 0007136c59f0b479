package import NotificationHubs

/// A send as the hub has accepted it: validated, and everything that delivery needs.
package struct NotificationRequest: Hashable, Sendable {
  /// What the body is.
  package enum Format: Hashable, Sendable {
    /// Properties for templates, as a JSON object of strings.
    case template
    /// A payload for one platform, passed on as it is.
    case native(PushPlatform)
  }

  package var format: Format
  /// The body as it came, without a byte order mark.
  package var body: [UInt8]
  /// The expression's wire text as it came; `nil` for a broadcast.
  package var tags: String?
  /// The parsed ``tags``.
  package var expression: TagExpression?
  /// Headers for the push services, names in lower case (`apns-priority`, `x-wns-type` …).
  package var headers: [String: String]
  /// When push services may give up, in seconds since 1970; `nil` when the sender did not say.
  package var expiry: Int64?
  /// Goes to the devices that the sender names (see ``DirectTarget``), not to an audience.
  package var isDirect: Bool

  package init(
    format: Format, body: [UInt8], tags: String? = nil, expression: TagExpression? = nil,
    headers: [String: String] = [:], expiry: Int64? = nil, isDirect: Bool = false
  ) {
    self.format = format
    self.body = body
    self.tags = tags
    self.expression = expression
    self.headers = headers
    self.expiry = expiry
    self.isDirect = isDirect
  }
}
