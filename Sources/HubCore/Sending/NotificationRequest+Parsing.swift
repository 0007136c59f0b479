import Foundation
import NotificationHubs
import Wire

extension NotificationRequest {
  /// The largest body of a send, in bytes (spec `rest-api.md` section 9).
  package static let maxBodyBytes = 65_536

  /// Reads and checks a send (spec `rest-api.md` 5.1, 5.2). What is for the push services to judge
  /// is handed on as it is.
  ///
  /// - Parameters:
  ///   - isDirect: The send goes to devices that it names, and can have no tags.
  ///   - isScheduled: The send may name its time.
  /// - Throws: ``HubFailure`` with 400 or 413 and the text of the specification.
  package init(
    headers: SendHeaders, body: [UInt8], limits: HubLimits, isDirect: Bool = false,
    isScheduled: Bool = false
  ) throws {
    guard body.count <= Self.maxBodyBytes else {
      throw HubFailure(
        status: 413,
        message: "The notification payload exceeds the maximum of \(Self.maxBodyBytes) bytes")
    }
    try Self.checkKind(headers, isDirect: isDirect, isScheduled: isScheduled)
    let format = try Self.format(headers[SendHeaderName.format])
    let (tags, expression) = try Self.audience(headers, limits: limits)
    if isDirect { try Self.checkDirect(format, hasTags: tags != nil) }
    let body = body.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(body.dropFirst(3)) : body
    try Self.checkSize(body, for: format, headers: headers)
    try Self.checkBody(body, for: format, headers: headers)
    var kept = try PassThroughHeaders.chosen(from: headers, format: format)
    let expiry = try Self.expiry(headers, kept: &kept)
    self.init(
      format: format, body: body, tags: tags, expression: expression, headers: kept,
      expiry: expiry, isDirect: isDirect)
  }

  /// A header that asks for less than everyone at once must never be passed over: the push would go
  /// out to everyone at once.
  private static func checkKind(
    _ headers: SendHeaders, isDirect: Bool, isScheduled: Bool
  ) throws {
    guard isDirect || headers[SendHeaderName.deviceHandle] == nil else {
      throw HubFailure(
        status: 400,
        message: "The header ServiceBusNotification-DeviceHandle names one device, and this send "
          + "goes to tags or to every device; add 'direct' to the query of the address, or leave "
          + "the header out")
    }
    guard isScheduled || headers[SendHeaderName.scheduleTime] == nil else {
      throw HubFailure(
        status: 400,
        message: "The header ServiceBusNotification-ScheduleTime is for POST "
          + "/schedulednotifications; this send would go out at once")
    }
    let unclear = headers.contradictory.filter {
      $0.hasPrefix(SendHeaderName.hubPrefix) || $0 == SendHeaderName.tagsAlias
    }
    if let name = unclear.min() {
      throw HubFailure(
        status: 400, message: "The header '\(name)' came more than once with different values")
    }
  }

  /// A direct send reaches what it names (spec `rest-api.md` 5.4).
  private static func checkDirect(_ format: Format, hasTags: Bool) throws {
    guard format != .template else {
      throw HubFailure(
        status: 400,
        message: "A direct send needs a native ServiceBusNotification-Format such as apple; "
          + "templates belong to registrations")
    }
    guard !hasTags else {
      throw HubFailure(
        status: 400,
        message: "A direct send goes to the devices that it names; leave "
          + "ServiceBusNotification-Tags out")
    }
  }

  private static func format(_ header: String?) throws -> Format {
    guard let word = header?.trimmingBlanks, word.lowercased() != "template" else {
      return .template
    }
    guard let platform = PushPlatform(sendFormat: word) else {
      let known = PushPlatform.allCases.map(\.sendFormat).joined(separator: ", ")
      throw HubFailure(
        status: 400,
        message: "The ServiceBusNotification-Format '\(word.prefix(40))' is not supported; "
          + "use one of template, \(known)")
    }
    return .native(platform)
  }

  /// A header that is there but blank must never become a broadcast (spec `tags.md` 2.1).
  private static func audience(
    _ headers: SendHeaders, limits: HubLimits
  ) throws -> (String?, TagExpression?) {
    let text: String
    if let header = headers[SendHeaderName.tags] {
      text = header.trimmingBlanks
    } else if let alias = headers[SendHeaderName.tagsAlias] {
      text = unquoted(alias.trimmingBlanks)
    } else {
      return (nil, nil)
    }
    guard !text.isEmpty else {
      throw HubFailure(
        status: 400,
        message: "The supplied tag expression is empty; leave the header out to reach every device")
    }
    do {
      return (text, try TagExpression(parsing: text, limits: limits.tags))
    } catch {
      throw HubFailure(status: 400, message: error.message)
    }
  }

  /// The tutorials send `Tags: "12345"`.
  private static func unquoted(_ text: String) -> String {
    guard text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return text }
    return text.dropFirst().dropLast().trimmingBlanks
  }

  /// A whole number of seconds moves from the headers to ``expiry``; what is no number stays for
  /// the push service to refuse. `apns-expiration` wins over the date header.
  private static func expiry(
    _ headers: SendHeaders, kept: inout [String: String]
  ) throws -> Int64? {
    if let text = kept[SendHeaderName.apnsExpiration] {
      guard let seconds = Int64(text), seconds >= 0 else { return nil }
      kept[SendHeaderName.apnsExpiration] = nil
      return seconds
    }
    guard let text = headers[SendHeaderName.apnsExpiryDate]?.trimmingBlanks, !text.isEmpty else {
      return nil
    }
    guard let date = WireDate.parse(text) else {
      throw HubFailure(
        status: 400,
        message: "The ServiceBusNotification-Apns-Expiry is no date; "
          + "write it as 2030-01-05T10:00:00Z or 01/05/2030 10:00:00")
    }
    return max(0, Int64(date.timeIntervalSince1970))
  }
}
