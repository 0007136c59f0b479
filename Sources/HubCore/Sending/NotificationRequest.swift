import Foundation
package import NotificationHubs
import Wire

/// A send as accepted by the hub: validated, with everything that delivery needs.
package struct NotificationRequest: Hashable, Sendable {
  /// The format of the body.
  package enum Format: Hashable, Sendable {
    /// Properties for templates, as a JSON object of strings.
    case template
    /// A payload for one platform, passed on unchanged.
    case native(PushPlatform)
  }

  package var format: Format
  /// The body as received, without a byte order mark.
  package var body: [UInt8]
  /// The expression's text as received; `nil` for a broadcast.
  package var tags: String?
  /// The parsed ``tags``.
  package var expression: TagExpression?
  /// Headers for the push services, names in lower case (`apns-priority`, `x-wns-type` …).
  package var headers: [String: String]
  /// The time after which push services may give up, in seconds since 1970; `nil` when the sender
  /// did not specify it.
  package var expiry: Int64?
  /// Whether it goes to the devices that the sender names (see ``DirectTarget``), not to an
  /// audience.
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

extension NotificationRequest {
  /// Maximum size of the body of a send, in bytes (docs/protocol/rest.md, section 9).
  package static let maxBodyBytes = 65_536

  /// Parses and validates a send (docs/protocol/rest.md, sections 5.1 and 5.2). Values that are up
  /// to the push services are passed on unchanged.
  ///
  /// - Parameters:
  ///   - isDirect: Whether the send goes to devices that it names, and must have no tags.
  ///   - isScheduled: Whether the send may specify its time.
  /// - Throws: ``HubFailure`` with 400 or 413.
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

  /// A header that restricts or delays a send must never be ignored: the push would be sent to
  /// everyone at once.
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

  /// A direct send reaches the named devices only (docs/protocol/rest.md, section 5.4).
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

  /// A header that is present but blank must never become a broadcast (docs/protocol/tags.md,
  /// section 2.1).
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

  /// Removes quotes, because the tutorials send `Tags: "12345"`.
  private static func unquoted(_ text: String) -> String {
    guard text.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else { return text }
    return text.dropFirst().dropLast().trimmingBlanks
  }

  /// Moves a whole number of seconds from the headers to ``expiry``; anything else is left for the
  /// push service to refuse. `apns-expiration` takes precedence over the date header.
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

extension NotificationRequest {
  /// Checks that a body has the form of its format (docs/protocol/rest.md, section 5.2). It is
  /// passed on byte for byte, so it is parsed strictly; its receivers are determined by the hub,
  /// never by the body.
  ///
  /// - Throws: ``HubFailure`` with 400.
  static func checkBody(_ body: [UInt8], for format: Format, headers: SendHeaders) throws {
    let text = "The supplied notification payload is invalid"
    guard try isWellFormed(body, for: format, headers: headers) else {
      throw HubFailure(status: 400, message: text)
    }
    guard format == .native(.fcmv1) else { return }
    let given = PayloadOutline(body)?.objects["message"] ?? []
    if let target = fcmTargets.first(where: given.contains) {
      throw HubFailure(
        status: 400,
        message: "\(text): 'message.\(target)' says whom it is for; leave it out, the hub writes "
          + "the target of each device")
    }
  }

  /// The members of an FCM message that name its receiver; FCM accepts only one of them.
  package static let fcmTargets = ["token", "fid", "topic", "condition"]

  private static func isWellFormed(
    _ body: [UInt8], for format: Format, headers: SendHeaders
  ) throws -> Bool {
    let isText = String(validating: body, as: UTF8.self) != nil
    switch format {
    case .template:
      guard isText else { return false }
      _ = try TemplateProperties(json: body)
      return true
    case .native(.apns):
      guard isText, let outline = PayloadOutline(body) else { return false }
      // Device management sends no `aps`.
      return outline.objects["aps"] != nil || outline.names.contains("mdm")
    case .native(.fcmv1):
      return isText && PayloadOutline(body)?.objects["message"] != nil
    case .native(.gcm):
      guard isText, let outline = PayloadOutline(body) else { return false }
      return outline.names.isDisjoint(with: ["to", "registration_ids"])
    case .native(let platform):
      switch platform.traits.form {
      case .xml:
        let isRaw = platform == .wns ? isRawWindows(headers) : isRawPhone(headers)
        return isRaw ? !body.isEmpty : isText && isXML(body)
      case .json:
        // The page that receives it defines its contents.
        return isText && isJSON(body)
      case .object: return isText && PayloadOutline(body) != nil
      }
    }
  }

  private static func isJSON(_ body: [UInt8]) -> Bool {
    body.withUnsafeBufferPointer { bytes in
      var scanner = JSONScanner(bytes)
      while let token = try? scanner.next() {
        if token == .end { return true }
      }
      return false
    }
  }

  private static func isRawWindows(_ headers: SendHeaders) -> Bool {
    if let type = headers[SendHeaderName.wnsType] { return type.lowercased() == "wns/raw" }
    return headers[SendHeaderName.contentType]?.lowercased().hasPrefix("application/octet-stream")
      ?? false
  }

  /// Whether it is a raw message of Windows Phone, which may have any form. It has no target
  /// header, and its class identifies it: 3 at once, 13 and 23 within a while
  /// (docs/protocol/push-services/retired.md, section 2).
  private static func isRawPhone(_ headers: SendHeaders) -> Bool {
    guard headers[SendHeaderName.mpnsTarget] == nil,
      let kind = headers[SendHeaderName.mpnsClass]?.trimmingBlanks
    else { return false }
    return ["3", "13", "23"].contains(kind)
  }

  /// Accepts any encoding that the document declares: .NET declares UTF-16 and sends UTF-8
  /// (docs/protocol/rest.md, section 5.2).
  private static func isXML(_ body: [UInt8]) -> Bool {
    (try? XMLValues.expressions(in: body)) != nil
  }
}

extension NotificationRequest {
  /// Refuses a native payload that its push service never accepts (docs/protocol/push-services), so
  /// that the sender learns of it at once and not device by device. Rendered templates, and limits
  /// that depend on more than the size, are reported with each device's outcome.
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
