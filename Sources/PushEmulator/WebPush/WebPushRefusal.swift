import HTTP2
import Wire

/// The reasons for which a Web Push service refuses a message, in no vendor's words
/// (docs/protocol/emulator.md, section 7).
enum WebPushRefusal: String, Error, Sendable, CaseIterable {
  case methodNotAllowed, unknownSubscription, unknownMessage, gone
  case missingAuthorization, invalidAuthorization, keyMismatch
  case ttlMissing, ttlInvalid, urgencyInvalid, topicInvalid
  case tooLarge, encodingInvalid, tooManyRequests
  /// Produced by faults only.
  case serverError, unavailable

  /// The HTTP status of RFC 8030 and 8292.
  var status: Int {
    switch self {
    case .methodNotAllowed: 405
    case .unknownSubscription, .unknownMessage: 404
    case .gone: 410
    case .missingAuthorization: 401
    case .invalidAuthorization, .keyMismatch: 403
    case .ttlMissing, .ttlInvalid, .urgencyInvalid, .topicInvalid, .encodingInvalid: 400
    case .tooLarge: 413
    case .tooManyRequests: 429
    case .serverError: 500
    case .unavailable: 503
    }
  }

  /// The most frequent refusal with a status.
  init(usualFor status: Int) {
    self =
      Self.allCases.first { $0.status == status && $0 != .ttlMissing && $0 != .keyMismatch }
      ?? (status < 500 ? .encodingInvalid : .serverError)
  }

  private var text: String {
    switch self {
    case .methodNotAllowed: "Only POST works here."
    case .unknownSubscription: "There is no such subscription."
    case .unknownMessage: "There is no such message."
    case .gone: "The subscription is gone."
    case .missingAuthorization: "The subscription needs VAPID authentication."
    case .invalidAuthorization: "The VAPID credentials are not valid."
    case .keyMismatch: "The VAPID key is not the subscription's."
    case .ttlMissing: "TTL is missing."
    case .ttlInvalid: "TTL must be digits."
    case .urgencyInvalid: "Urgency must be one of very-low, low, normal, high."
    case .topicInvalid: "Topic must be 1 to 32 characters of base 64 URL."
    case .tooLarge: "The body is larger than 4096 bytes."
    case .encodingInvalid: "The body is no aes128gcm message (RFC 8291)."
    case .tooManyRequests: "Too many messages."
    case .serverError: "Something went wrong."
    case .unavailable: "Try again later."
    }
  }

  // MARK: Vendors

  /// The reply in the form of a vendor's service (docs/protocol/push-services/web-push.md, section
  /// 5).
  ///
  /// - Parameter status: The status that a fault requests instead.
  func response(
    _ flavor: WebPushFlavor, status: Int? = nil, reason: String? = nil
  ) -> HTTP2ServerResponse {
    var fields: [(name: String, value: String)] = []
    if self == .missingAuthorization { fields.append(("www-authenticate", "vapid")) }
    if self == .tooManyRequests { fields.append(("retry-after", "10")) }
    switch flavor {
    case .rfc:
      return .init(
        status: status ?? self.status,
        fields: HTTP2FieldList(fields + [("content-type", "text/plain; charset=utf-8")]),
        body: Array((reason ?? text).utf8))
    case .mozilla:
      let code = status ?? self.status
      return .json(
        code,
        [
          "code": JSONValue(code), "errno": JSONValue(errno), "error": .string(Self.phrase(code)),
          "message": .string(reason ?? text),
          "more_info": "http://autopush.readthedocs.io/en/latest/http.html#error-codes",
        ], fields: fields)
    case .google:
      return .init(
        status: status ?? self.status,
        fields: HTTP2FieldList(fields + [("content-type", "text/html; charset=UTF-8")]),
        body: Array("<HTML>\n<BODY>\n<H1>\(reason ?? googleText)</H1>\n</BODY>\n</HTML>\n".utf8))
    case .apple:
      return .json(
        status ?? appleStatus, ["reason": .string(reason ?? appleReason)], fields: fields,
        contentType: "application/json")
    }
  }

  private var errno: Int {
    switch self {
    case .methodNotAllowed: 101
    case .unknownSubscription: 102
    case .unknownMessage: 102
    case .gone: 103
    case .missingAuthorization, .invalidAuthorization, .keyMismatch: 109
    case .ttlMissing: 111
    case .ttlInvalid: 112
    case .topicInvalid: 113
    case .urgencyInvalid, .encodingInvalid: 110
    case .tooLarge: 104
    case .tooManyRequests: 201
    case .serverError: 999
    case .unavailable: 202
    }
  }

  private static func phrase(_ status: Int) -> String {
    switch status {
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 410: "Gone"
    case 413: "Payload Too Large"
    case 429: "Too Many Requests"
    case 503: "Service Unavailable"
    default: "Internal Server Error"
    }
  }

  private var googleText: String {
    switch self {
    case .keyMismatch:
      "the key in the authorization header does not correspond to the sender ID used to subscribe "
        + "this user. Please ensure you are using the correct sender ID and server Key."
    case .gone: "push subscription has unsubscribed or expired."
    case .missingAuthorization: "UnauthorizedRegistration"
    default: text
    }
  }

  /// Apple rejects a bad key or header with 400.
  private var appleStatus: Int {
    switch self {
    case .missingAuthorization, .keyMismatch: 400
    default: status
    }
  }

  private var appleReason: String {
    switch self {
    case .methodNotAllowed: "MethodNotAllowed"
    case .unknownSubscription, .unknownMessage: "BadPath"
    case .gone: "Unregistered"
    case .missingAuthorization: "BadAuthorizationHeader"
    case .invalidAuthorization: "BadJwtToken"
    case .keyMismatch: "VapidPkHashMismatch"
    case .ttlMissing, .ttlInvalid: "BadWebPushTTL"
    case .urgencyInvalid: "BadWebPushUrgency"
    case .topicInvalid: "BadWebPushTopic"
    case .tooLarge: "PayloadTooLarge"
    case .encodingInvalid: "BadWebPushRequest"
    case .tooManyRequests: "TooManyRequests"
    case .serverError: "InternalServerError"
    case .unavailable: "ServiceUnavailable"
    }
  }
}
