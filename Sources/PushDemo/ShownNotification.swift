public import Foundation
import NotificationHubs
import Wire

/// The parts of an APNs payload that a phone shows.
///
/// - SeeAlso: Apple, "Generating a remote notification", the tables of keys.
public struct ShownNotification: Hashable, Sendable {
  public let title: String?
  public let subtitle: String?
  /// The text, which the tutorial app shows in its alert.
  public let body: String?
  /// The number at the app's icon; 0 removes it, `nil` leaves it unchanged.
  public let badge: Int?
  /// The name of a sound file, or `default`.
  public let sound: String?
  /// Whether the app is woken in the background.
  public let wakesApp: Bool

  /// - Parameter payload: The JSON of the notification.
  /// - Returns: `nil` if it is not a JSON object with an object `aps`.
  public init?(payload: Data) {
    guard let document = try? JSONValue.parse(payload), let aps = document.member("aps"),
      case .object = aps
    else { return nil }
    let alert = aps.member("alert")
    if case .string(let text)? = alert {
      (title, subtitle, body) = (nil, nil, text)
    } else {
      title = alert?.text(or: "title-loc-key", for: "title")
      subtitle = alert?.text(or: "subtitle-loc-key", for: "subtitle")
      body = alert?.text(or: "loc-key", for: "body")
    }
    if case .number(let digits)? = aps.member("badge") { badge = Int(digits) } else { badge = nil }
    switch aps.member("sound") {
    case .string(let name)?: sound = name
    case let critical?: sound = critical.member("name")?.scalarText
    case nil: sound = nil
    }
    wakesApp = aps.member("content-available")?.scalarText == "1"
  }

  /// Whether the notification can be seen or heard.
  public var isVisible: Bool {
    title != nil || subtitle != nil || body != nil || badge != nil || sound != nil
  }

  /// Title, subtitle and body on one line, for printing in a terminal.
  public var summary: String {
    [title, subtitle, body].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " – ")
  }
}

extension JSONValue {
  /// The member with exactly this name: Apple's keys are case-sensitive.
  fileprivate func member(_ name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// A text of an alert; if it is absent, the key of its localization, which only the app could
  /// resolve.
  fileprivate func text(or key: String, for name: String) -> String? {
    if case .string(let text)? = member(name) { return text }
    if case .string(let text)? = member(key) { return text }
    return nil
  }
}

/// A queue of texts to show over the app: iOS drops an alert that is presented while another is
/// shown, or before the screen has appeared.
public struct AlertQueue: Sendable {
  private var waiting: [String] = []
  private var isShowing = false
  private var hasScreen = false

  public init() {}

  /// - Returns: The text to present now, if any.
  public mutating func add(_ text: String) -> String? {
    waiting.append(text)
    return next()
  }

  /// Records that the screen has appeared or disappeared.
  /// - Returns: The text to present now, if any.
  public mutating func screen(isThere: Bool) -> String? {
    hasScreen = isThere
    // An alert disappears with its screen.
    if !isThere { isShowing = false }
    return next()
  }

  /// Records that the user has closed the alert.
  /// - Returns: The text to present now, if any.
  public mutating func closed() -> String? {
    isShowing = false
    return next()
  }

  private mutating func next() -> String? {
    guard hasScreen, !isShowing, !waiting.isEmpty else { return nil }
    isShowing = true
    return waiting.removeFirst()
  }
}
