import HTTPServer
import NotificationHubs

/// A refusal, worded as the tutorials' backend words it: `{"Message":"…"}`.
struct APIFailure: Error {
  let status: HTTPStatus
  let message: String
  var headers: [(name: String, value: String)] = []

  init(_ status: HTTPStatus, _ message: String) {
    self.status = status
    self.message = message
  }

  /// The same whether there is nothing or it is somebody else's.
  static func notFound(_ what: String) -> APIFailure {
    APIFailure(.notFound, "there is no such \(what)")
  }

  /// What went wrong between the backend and its hub. Only the caller's own mistakes are told in the
  /// hub's words.
  init(hub error: NotificationHubError) {
    switch error.kind {
    case .badRequest, .tooLarge, .conflict:
      self.init(.badRequest, error.detail ?? "the hub does not take this")
    case .gone:
      self.init(.gone, "the registration is gone: ask for a new id with POST /api/register")
    case .notFound: self.init(.notFound, "the hub has no such registration or installation")
    case .quotaExceeded, .serverBusy, .unreachable:
      self.init(.serviceUnavailable, "the notification hub does not answer; try again later")
      headers.append(("Retry-After", String(error.retryAfter ?? 5)))
    default:
      self.init(
        502, "the notification hub refuses this backend; its connection string may be wrong")
    }
  }
}
