import NotificationHubs
import Wire

extension NotificationRequest {
  /// Checks that a body has the form of its format (spec `rest-api.md` 5.2). It travels on byte for
  /// byte, so it is read strictly; whom it goes to is for the hub to say, never for the body.
  ///
  /// - Throws: ``HubFailure`` with 400 and the text of the specification.
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

  /// The members of an FCM message that say whom it is for; FCM takes one of them in all.
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
    case .native(.wns):
      return isRawWindows(headers) ? !body.isEmpty : isText && isXML(body)
    case .native(.mpns):
      return isRawPhone(headers) ? !body.isEmpty : isText && isXML(body)
    case .native(.apns):
      guard isText, let outline = PayloadOutline(body) else { return false }
      // Device management sends no `aps`.
      return outline.objects["aps"] != nil || outline.names.contains("mdm")
    case .native(.fcmv1):
      return isText && PayloadOutline(body)?.objects["message"] != nil
    case .native(.gcm):
      guard isText, let outline = PayloadOutline(body) else { return false }
      return outline.names.isDisjoint(with: ["to", "registration_ids"])
    case .native(.browser):
      // What a page does with it is its own affair: any JSON value will do.
      return isText && isJSON(body)
    case .native(.adm), .native(.baidu), .native(.xiaomi):
      return isText && PayloadOutline(body) != nil
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

  /// A raw message of Windows Phone has any form. It has no target header, and its class says that
  /// it is one: 3 at once, 13 and 23 within a while (spec `pns/mpns-and-gcm-legacy.md` 2).
  private static func isRawPhone(_ headers: SendHeaders) -> Bool {
    guard headers[SendHeaderName.mpnsTarget] == nil,
      let kind = headers[SendHeaderName.mpnsClass]?.trimmingBlanks
    else { return false }
    return ["3", "13", "23"].contains(kind)
  }

  /// Whatever encoding the document declares: .NET declares UTF-16 and sends UTF-8 (spec 5.2).
  private static func isXML(_ body: [UInt8]) -> Bool {
    (try? XMLValues.expressions(in: body)) != nil
  }
}
