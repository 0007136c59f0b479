import NotificationHubs
import Wire

/// The headers of a send that are for the push services, not for the hub: chosen by name, bounded,
/// and free of characters that could end a header line. Their meaning is for the push service to
/// judge (spec `rest-api.md` 5.1: "handed on unchanged").
enum PassThroughHeaders {
  /// More than any push service knows.
  static let maxCount = 32
  /// All names and values together; what APNs and WNS know stays far below.
  static let maxBytes = 4096

  /// - Returns: Names in lower case; empty values left out.
  /// - Throws: ``HubFailure`` with 400.
  static func chosen(
    from headers: SendHeaders, format: NotificationRequest.Format
  ) throws -> [String: String] {
    var kept: [String: String] = [:]
    for (name, value) in headers.fields where isForPushService(name, format: format) {
      let value = value.trimmingBlanks
      guard !value.isEmpty else { continue }
      guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        throw HubFailure(
          status: 400, message: "The header '\(name)' contains a control character")
      }
      kept[name] = value
    }
    for (old, new) in SendHeaderName.apnsAliases {
      guard let value = headers[old]?.trimmingBlanks, !value.isEmpty, kept[new] == nil else {
        continue
      }
      kept[new] = value
    }
    let size = kept.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    guard kept.count <= maxCount, size <= maxBytes else {
      throw HubFailure(
        status: 400,
        message: "The headers for the push service exceed \(maxCount) fields or \(maxBytes) bytes")
    }
    return kept
  }

  /// Whether a push service gets a header at all; a template send reaches every platform, so each
  /// gets its own only.
  static func isRead(by platform: PushPlatform, _ name: String) -> Bool {
    switch platform {
    case .apns: name.hasPrefix("apns-")
    case .wns: name.hasPrefix("x-wns-")
    case .baidu: name.hasPrefix("x-baidu-")
    case .mpns: name.hasPrefix("x-") && !name.hasPrefix("x-wns-") && !name.hasPrefix("x-baidu-")
    case .browser: browserNames.contains(name)
    case .gcm, .fcmv1, .adm, .xiaomi: false
    }
  }

  /// The headers of RFC 8030, section 5, that a sender decides.
  private static let browserNames: Set<String> = ["ttl", "urgency", "topic"]

  private static func isForPushService(
    _ name: String, format: NotificationRequest.Format
  ) -> Bool {
    if name.hasPrefix("apns-") || name.hasPrefix("x-wns-") || name.hasPrefix("x-baidu-") {
      return true
    }
    if browserNames.contains(name) { return format == .native(.browser) || format == .template }
    if name == SendHeaderName.mpnsTarget || name == SendHeaderName.mpnsClass { return true }
    // MPNS takes any `X-` header; those of proxies and of Azure's clients are not meant for it.
    return format == .native(.mpns) && name.hasPrefix("x-") && !name.hasPrefix("x-ms-")
      && !name.hasPrefix("x-apns-") && !name.hasPrefix("x-forwarded-")
  }
}
