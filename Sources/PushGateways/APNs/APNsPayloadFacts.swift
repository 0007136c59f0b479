import NotificationHubs
import Wire

/// Properties of a payload that determine the kind of push.
struct APNsPayloadFacts: Equatable, Sendable {
  /// Whether `aps` has an alert, badge or sound, which the user notices.
  private(set) var isNoticeable = false
  /// Whether `aps` has `content-available` 1.
  private(set) var isContentAvailable = false
  /// Whether it has the member `mdm`.
  private(set) var isDeviceManagement = false

  /// - Returns: `nil` when the bytes are not a JSON object in UTF-8.
  init?(_ bytes: [UInt8]) {
    if bytes.contains(where: { $0 >= 0x80 }), String(validating: bytes, as: UTF8.self) == nil {
      return nil
    }
    do throws(SyntaxFault) {
      try bytes.withUnsafeBufferPointer { bytes throws(SyntaxFault) in
        var scanner = JSONScanner(bytes)
        try read(&scanner)
      }
    } catch { return nil }
  }

  private mutating func read(_ scanner: inout JSONScanner) throws(SyntaxFault) {
    guard try scanner.next() == .objectStart else { throw scanner.fault("no object") }
    while let name = try scanner.nextMember() {
      if scanner.matches(name, "mdm") { isDeviceManagement = true }
      guard scanner.matches(name, "aps"), scanner.peek() == UInt8(ascii: "{") else {
        try scanner.skipValue()
        continue
      }
      _ = try scanner.next()
      while let name = try scanner.nextMember() {
        if scanner.matches(name, "alert") || scanner.matches(name, "badge")
          || scanner.matches(name, "sound")
        {
          isNoticeable = true
        } else if scanner.matches(name, "content-available"), scanner.peek() == UInt8(ascii: "1") {
          guard case .number(let digits) = try scanner.next() else { continue }
          isContentAvailable = digits.count == 1
          continue
        }
        try scanner.skipValue()
      }
    }
    try scanner.finish()
  }

  /// The kind of push when the sender named none (docs/protocol/push-services/apns.md, section 3).
  var pushType: APNsPayload.PushType {
    if isNoticeable { return .alert }
    if isContentAvailable { return .background }
    return isDeviceManagement ? .mdm : .alert
  }
}
