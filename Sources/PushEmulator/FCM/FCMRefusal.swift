import HTTP2
import Wire

/// An error of FCM for a message, in the form of its API (docs/protocol/push-services/fcm.md,
/// section 4).
struct FCMRefusal: Error, Sendable, Equatable {
  let status: Int
  /// The canonical code of the HTTP status.
  let word: String
  let message: String
  /// `FcmError.errorCode`; `nil` for an error of Google's front end.
  var code: String?
  /// `BadRequest.fieldViolations`.
  var violations: [Violation] = []
  /// Seconds.
  var retryAfter: Int?

  struct Violation: Sendable, Equatable {
    /// For example `message.data[0].value`.
    let field: String
    let description: String
  }

  /// 400 with the fields that are wrong.
  static func badRequest(_ violations: [Violation]) -> FCMRefusal {
    .init(
      status: 400, word: "INVALID_ARGUMENT",
      message: violations.map(\.description).joined(separator: "\n"), violations: violations)
  }

  static func badRequest(_ field: String, _ description: String) -> FCMRefusal {
    badRequest([Violation(field: field, description: description)])
  }

  /// An error with FCM's own code.
  static func fcm(_ code: String, _ message: String, retryAfter: Int? = nil) -> FCMRefusal {
    let status = statuses.first { $0.code == code }?.status ?? 400
    return .init(
      status: status, word: Self.word(for: status), message: message, code: code,
      retryAfter: retryAfter)
  }

  static let unauthenticated = FCMRefusal(
    status: 401, word: "UNAUTHENTICATED",
    message: "Request had invalid authentication credentials. Expected OAuth 2 access token.")

  static let tooManyTopics = FCMRefusal(
    status: 429, word: "RESOURCE_EXHAUSTED",
    message: "The app instance has \(FCMTopics.limit) topics already.")

  /// FCM's codes with their HTTP status.
  private static let statuses: [(code: String, status: Int)] = [
    ("INVALID_ARGUMENT", 400), ("UNREGISTERED", 404), ("SENDER_ID_MISMATCH", 403),
    ("QUOTA_EXCEEDED", 429), ("UNAVAILABLE", 503), ("INTERNAL", 500),
    ("THIRD_PARTY_AUTH_ERROR", 401), ("UNSPECIFIED_ERROR", 500),
  ]

  /// The canonical code of an HTTP status (google.rpc.Code).
  static func word(for status: Int) -> String {
    switch status {
    case 400: "INVALID_ARGUMENT"
    case 401: "UNAUTHENTICATED"
    case 403: "PERMISSION_DENIED"
    case 404: "NOT_FOUND"
    case 409: "ABORTED"
    case 429: "RESOURCE_EXHAUSTED"
    case 500: "INTERNAL"
    case 503: "UNAVAILABLE"
    case 504: "DEADLINE_EXCEEDED"
    default: "UNKNOWN"
    }
  }

  /// The error of a `reply` fault: its reason is FCM's code or the canonical one; without a reason,
  /// the most frequent one with the status.
  init(fault status: Int, reason: String?) {
    self.status = status
    word = Self.word(for: status)
    message = "injected fault"
    let usual: String? =
      switch status {
      case 404: "UNREGISTERED"
      case 429: "QUOTA_EXCEEDED"
      case 500: "INTERNAL"
      case 503: "UNAVAILABLE"
      default: nil
      }
    let wanted = reason ?? usual
    code = Self.statuses.contains { $0.code == wanted } ? wanted : nil
  }

  init(
    status: Int, word: String, message: String, code: String? = nil,
    violations: [Violation] = [], retryAfter: Int? = nil
  ) {
    self.status = status
    self.word = word
    self.message = message
    self.code = code
    self.violations = violations
    self.retryAfter = retryAfter
  }

  /// The name in journal and statistics.
  var reason: String { code ?? word }

  var response: HTTP2ServerResponse {
    var details: [JSONValue] = []
    if let code {
      details.append([
        "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code),
      ])
    }
    if !violations.isEmpty {
      let list = violations.map { violation -> JSONValue in
        ["field": .string(violation.field), "description": .string(violation.description)]
      }
      details.append([
        "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": .array(list),
      ])
    }
    var members: [JSONValue.Member] = [
      .init("code", JSONValue(status)), .init("message", .string(message)),
      .init("status", .string(word)),
    ]
    if !details.isEmpty { members.append(.init("details", .array(details))) }
    var fields: [(name: String, value: String)] = []
    if status == 401 {
      fields.append(("www-authenticate", "Bearer realm=\"accounts.google.com/\""))
    }
    if let retryAfter { fields.append(("retry-after", String(retryAfter))) }
    return .json(status, ["error": .object(members)], fields: fields)
  }
}
