/// A refusal as the client will see it (docs/protocol/rest.md, section 1.6).
package struct HubFailure: Error, Hashable, CustomStringConvertible {
  /// The HTTP status.
  package let status: Int
  /// The text in front of `.TrackingId:`; `nil` answers with an empty body, as the service does
  /// for a missing right.
  package let message: String?
  /// Whole seconds for the `Retry-After` header.
  package let retryAfter: Int?

  package init(status: Int, message: String?, retryAfter: Int? = nil) {
    self.status = status
    self.message = message
    self.retryAfter = retryAfter
  }

  package var description: String { message ?? "status \(status)" }

  /// 404: the hub does not exist.
  package static let noHub = HubFailure(
    status: 404, message: "No service is hosted at the specified address.")
  /// 403 without a body: the token is valid, its policy lacks the right.
  package static let missingRight = HubFailure(status: 403, message: nil)
}
