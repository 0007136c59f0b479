import NotificationHubs

/// The words by which people name a platform when they speak of its credential.
enum CredentialPlatform {
  /// Those that a credential can be set for here.
  static let served: [PushPlatform] = [.apns, .fcmv1, .browser, .wns, .adm, .baidu, .xiaomi]
  static let words = served.map(word)
  static let list = "apns, fcm, browser, wns, adm, baidu or xiaomi"

  private static let others: [String: PushPlatform] = [
    "fcm": .fcmv1, "web": .browser, "webpush": .browser, "apple": .apns, "windows": .wns,
    "amazon": .adm,
  ]

  /// As it is taught: `fcm`, and otherwise an installation's word.
  static func word(_ platform: PushPlatform) -> String {
    platform == .fcmv1 ? "fcm" : platform.rawValue
  }

  /// The platform that the first argument names.
  ///
  /// - Parameter includesEnded: Services that have ended: a hub may hold credentials of them.
  static func of(_ words: Words, includesEnded: Bool = false) throws(UsageError) -> PushPlatform {
    let word = try words.argument(0)
    guard let platform = others[word.lowercased()] ?? PushPlatform(installationWord: word),
      includesEnded || served.contains(platform)
    else {
      throw words.fault("'\(word)' is not served by this version; it is one of \(list)")
    }
    return platform
  }
}
