import NotificationHubs

extension PushPlatform {
  /// The most bytes of payload that the push service takes, as far as its documents say (spec
  /// `pns/`); the gateways and the services themselves have the last word.
  ///
  /// - Parameter headers: Those of the push: Apple takes more for calls over the internet.
  func payloadLimit(headers: [String: String] = [:]) -> Int {
    switch self {
    case .apns: headers["apns-push-type"] == "voip" ? 5_120 : 4_096
    case .wns: 5_000
    case .adm: 6_144
    case .browser: 3_993
    case .fcmv1, .gcm, .mpns, .baidu, .xiaomi: 4_096
    }
  }
}

extension PushID {
  /// The canonical lower-case UUID form: 8-4-4-4-12 digits.
  var uuidText: String {
    func digits(_ number: UInt64) -> String {
      let text = String(number, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }
    let (high, low) = (digits(high), digits(low))
    return [
      high.prefix(8), high.dropFirst(8).prefix(4), high.suffix(4), low.prefix(4),
      low.suffix(12),
    ].joined(separator: "-")
  }
}
