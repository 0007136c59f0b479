public import Foundation
import NotificationHubs
import Wire

/// A push as the device received it, for APNs: the notification's `userInfo`.
public struct PushMessage: Hashable, Sendable {
  /// The members in which a message has its id: the app's own, and that of secure push.
  static let idNames = ["notificationId", "secureId"]

  /// The payload as JSON.
  public let json: Data
  /// Title, subtitle and body.
  public let text: NotificationText
  /// The number at the app's icon; 0 removes it, `nil` leaves it unchanged.
  public let badge: Int?
  /// The name of a sound file, or `default`.
  public let sound: String?
  /// Whether the app is woken in the background.
  public let wakesApp: Bool
  /// The member `notificationId`, by which a duplicate is recognized; `secureId` of a secure message.
  public let notificationID: String?
  /// The member `user`: the user whom the message is for; `nil` if it is for the device.
  public let userID: String?
  /// The member `image`, if it is an address with https.
  public let image: URL?

  /// - Returns: `nil` if it is not a JSON object.
  public init?(json: Data) {
    guard let document = try? JSONValue.parse(json), case .object = document else { return nil }
    self.json = json
    // Apple's keys are case-sensitive.
    let aps = document.member("aps")
    text = NotificationText(alert: aps?.member("alert"))
    badge = aps?.member("badge")?.whole.flatMap(Int.init(exactly:))
    let sound = aps?.member("sound")
    self.sound = sound?.text ?? sound?.member("name")?.text
    wakesApp = aps?.member("content-available")?.scalarText == "1"
    notificationID = Self.idNames.compactMap { document.member($0)?.text }.first
    userID = document.member("user")?.text
    image = document.member("image")?.text.flatMap { URL(string: $0) }
      .flatMap { $0.scheme?.lowercased() == "https" ? $0 : nil }
  }

  /// - Parameter userInfo: The dictionary of a notification.
  public init?(userInfo: [AnyHashable: Any]) {
    guard JSONSerialization.isValidJSONObject(userInfo),
      let json = try? JSONSerialization.data(
        withJSONObject: userInfo, options: .sortedKeys)
    else { return nil }
    self.init(json: json)
  }

  /// Whether the notification can be seen or heard.
  public var isVisible: Bool { text != NotificationText() || badge != nil || sound != nil }

  /// Whether the message is for the signed-in user, or for the device. Before the first unlock nobody
  /// knows who is signed in: then a user's message is for somebody else.
  func isForUser(in storage: any DeviceStorage) -> Bool {
    guard let userID else { return true }
    return (try? DeviceRecord.userID(in: storage)) == userID
  }

  /// Decodes the payload with its members of the app's own.
  public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try JSONDecoder().decode(type, from: json)
  }
}

/// The parts of a notification that are text.
///
/// - SeeAlso: Apple, "Generating a remote notification", the tables of keys.
public struct NotificationText: Hashable, Sendable {
  /// The title.
  public var title: String?
  /// The line below the title.
  public var subtitle: String?
  /// The text below both.
  public var body: String?

  /// Creates a text; `nil` leaves a part out.
  public init(title: String? = nil, subtitle: String? = nil, body: String? = nil) {
    self.title = title
    self.subtitle = subtitle
    self.body = body
  }

  /// Title, subtitle and body on one line.
  public var summary: String {
    [title, subtitle, body].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " – ")
  }

  init(alert: JSONValue?) {
    if let text = alert?.text {
      body = text
      return
    }
    // If a text is absent, the key of its localization, which only the app could resolve.
    func text(_ name: String, _ key: String) -> String? {
      alert?.member(name)?.text ?? alert?.member(key)?.text
    }
    title = text("title", "title-loc-key")
    subtitle = text("subtitle", "subtitle-loc-key")
    body = text("body", "loc-key")
  }
}
