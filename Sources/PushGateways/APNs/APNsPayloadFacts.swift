/// What a payload says about itself.
struct APNsPayloadFacts: Equatable, Sendable {
  /// `aps` has an alert, badge or sound: the device's user notices it.
  private(set) var isNoticeable = false
  /// `aps` has `content-available` 1.
  private(set) var isContentAvailable = false
  /// Has the member `mdm`.
  private(set) var isDeviceManagement = false

  /// - Returns: `nil` when the bytes are not a JSON object in UTF-8.
  init?(_ bytes: [UInt8]) {
    var facts = (notice: false, content: false, management: false)
    var scanner = JSONScanner(bytes)
    let isObject = scanner.object { key, value in
      if key.elementsEqual("mdm".utf8) { facts.management = true }
      guard key.elementsEqual("aps".utf8), value.peek() == UInt8(ascii: "{") else {
        return value.skipValue()
      }
      return value.object { key, value in
        if key.elementsEqual("alert".utf8) || key.elementsEqual("badge".utf8)
          || key.elementsEqual("sound".utf8)
        {
          facts.notice = true
        } else if key.elementsEqual("content-available".utf8), value.peek() == UInt8(ascii: "1") {
          guard let number = value.number() else { return false }
          facts.content = number.count == 1
          return true
        }
        return value.skipValue()
      }
    }
    guard isObject, scanner.isAtEnd() else { return nil }
    if bytes.contains(where: { $0 >= 0x80 }), String(validating: bytes, as: UTF8.self) == nil {
      return nil
    }
    (isNoticeable, isContentAvailable, isDeviceManagement) = facts
  }

  /// The kind of push when the sender named none (spec `pns/apns.md` section 3).
  var pushType: APNsPushType {
    if isNoticeable { return .alert }
    if isContentAvailable { return .background }
    return isDeviceManagement ? .mdm : .alert
  }
}
