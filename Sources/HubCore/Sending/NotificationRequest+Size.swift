import NotificationHubs

extension NotificationRequest {
  /// Refuses a native payload that its push service takes from nobody (spec `pns`), so that the
  /// sender hears of it at once and not device by device. What a template renders, and limits that
  /// depend on more than the size, are told with each device's outcome.
  ///
  /// - Throws: ``HubFailure`` with 413.
  static func checkSize(_ body: [UInt8], for format: Format) throws {
    guard case .native(let platform) = format, let limit = limit(platform), body.count > limit
    else { return }
    throw HubFailure(
      status: 413,
      message:
        "The payload has \(body.count) bytes; the format \(platform.sendFormat) takes at most "
        + "\(limit)")
  }

  /// In bytes; `nil` where only the push service can tell.
  private static func limit(_ platform: PushPlatform) -> Int? {
    switch platform {
    case .apns: 5120  // of VoIP, the largest kind
    case .wns: 5000
    case .adm: 6144
    case .baidu: 4096
    case .mpns: 3072
    case .gcm, .fcmv1, .browser, .xiaomi: nil
    }
  }
}
