/// The push services that have a stand-in here, by their names in the control API
/// (emulator.md, section 2).
enum PushService: String, CaseIterable, Sendable, Codable {
  case apns, fcm, wns, webpush, adm, baidu, xiaomi
}

/// How much a message presses, in the services' common order: Web Push's four words
/// (RFC 8030, section 5.3); the others' priorities are two of them.
enum Urgency: UInt8, Comparable, Sendable, Codable {
  case veryLow, low, normal, high

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  /// As `Urgency` of Web Push says it.
  var word: String {
    switch self {
    case .veryLow: "very-low"
    case .low: "low"
    case .normal: "normal"
    case .high: "high"
    }
  }

  static let words = ["very-low", "low", "normal", "high"]

  init?(word: String) {
    guard let place = Self.words.firstIndex(of: word) else { return nil }
    self.init(rawValue: UInt8(place))
  }
}
