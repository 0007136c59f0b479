import HubCore
import NotificationHubs

/// The things that a life's clients write about, from small pools so that they meet.
enum Names {
  static let tags = ["red", "green", "blue", "beta", "news"]

  static func hub(_ index: Int) -> String { "hub\(index)" }
  static func device(_ index: Int) -> String { "device\(index)" }
  static func user(_ index: Int) -> String { "user\(index)" }
  /// Those of a life, by the number that a plan gives them.
  static let platforms: [PushPlatform] = [.apns, .fcmv1, .wns, .browser]
  /// The handles from here on are channels of Windows, and as many later subscriptions of browsers.
  static let windowsHandles = 5_000
  static let browserHandles = 6_000

  /// Of the others one in four is of FCM, and the rest of APNs.
  static func platform(ofHandle index: Int) -> PushPlatform {
    if index >= browserHandles { return .browser }
    return index >= windowsHandles ? .wns : index % 4 == 3 ? .fcmv1 : .apns
  }

  private static let zeros = String(repeating: "0", count: 64)

  /// In the form in which it is stored.
  static func handle(_ index: Int) -> String {
    let number = String(index + 0x1000, radix: 16, uppercase: true)
    return switch platform(ofHandle: index) {
    case .apns: zeros.dropFirst(number.count) + number
    case .wns: "https://db5.notify.windows.com/?token=\(number)"
    case .browser: SimulatedBrowser.handle("https://updates.push.services.mozilla.com/v2/\(number)")
    default: "token-\(number)"
    }
  }

  static func channel(_ index: Int) -> PushChannel {
    PushChannel(stored: handle(index), platform: platform(ofHandle: index))
  }

  /// A handle in the form in which it is stored, from that which its push service has.
  static func handle(_ text: String, of service: SimulatedService) -> String {
    switch service {
    case .apns: text.uppercased()
    case .webPush: SimulatedBrowser.handle(text)
    default: text
    }
  }

  /// The last digits of a handle, for readers.
  static func short(_ handle: String) -> String {
    String(decoding: handle.utf8.prefix { $0 != UInt8(ascii: "\n") }.suffix(4), as: UTF8.self)
  }

  private static let word = Array("line ".utf8)

  /// The line of the plan that a message names: `line 17`.
  static func line(in body: [UInt8]) -> Int? {
    // Not `firstRange(of:)`, which takes longer than what is done with the line.
    let start = body.indices.first { body[$0] == word[0] && body[$0...].starts(with: word) }
    guard let start else { return nil }
    let digits = body[(start + word.count)...].prefix { (0x30...0x39).contains($0) }
    return Int(String(decoding: digits, as: UTF8.self))
  }

  static func index(ofHandle text: String) -> Int? {
    Int(short(text), radix: 16).map { $0 - 0x1000 }
  }

  static func tags(_ mask: Int) -> [String] {
    tags.indices.filter { mask >> $0 & 1 == 1 }.map { tags[$0] }
  }

  static func mask(_ names: some Sequence<String>) -> Int {
    names.reduce(0) { mask, name in tags.firstIndex(of: name).map { mask | 1 << $0 } ?? mask }
  }

  /// `nil` is everyone.
  static func expression(_ index: Int) -> String? {
    switch index {
    case 1...5: tags[index - 1]
    case 6: "red && green"
    case 7: "blue || !beta"
    case 8: "$UserId:{user1}"
    case 9: "$InstallationId:{device2}"
    default: nil
    }
  }

  /// Whether an expression is true of a device, by a reading of its own: `||` of `&&` of tags, each of
  /// which may have a `!`.
  static func matches(_ expression: String, _ tags: [String]) -> Bool {
    let tags = tags.map { $0.lowercased() }
    return expression.lowercased().split(separator: "||").contains { alternative in
      alternative.split(separator: "&&").allSatisfy { word in
        let tag = word.filter { $0 != " " }
        return tag.hasPrefix("!") ? !tags.contains(String(tag.dropFirst())) : tags.contains(tag)
      }
    }
  }
}
