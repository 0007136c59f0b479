import NotificationHubs

extension NotificationRequest {
  /// Refuses a native payload that its push service takes from nobody (spec `pns`), so that the
  /// sender hears of it at once and not device by device. What a template renders, and limits that
  /// depend on more than the size, are told with each device's outcome.
  ///
  /// - Throws: ``HubFailure`` with 413.
  static func checkSize(_ body: [UInt8], for format: Format, headers: SendHeaders) throws {
    guard case .native(let platform) = format,
      let excess = PayloadSize.excess(of: body, for: platform, headers: headers.fields)
    else { return }
    throw HubFailure(
      status: 413,
      message:
        "The payload has \(excess.size) bytes; the format \(platform.sendFormat) takes at most "
        + "\(excess.limit)")
  }
}
