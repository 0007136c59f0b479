public import Foundation
import NotificationHubs
import Wire

/// What a phone shows of a payload that APNs brought it.
///
/// - SeeAlso: Apple, "Generating a remote notification", the tables of keys.
public struct ShownNotification: Hashable, Sendable {
  public let title: String?
  public let subtitle: String?
  /// The text: what the tutorial app puts into its alert.
  public let body: String?
  /// The number on the app's icon; 0 takes it away, `nil` leaves it.
  public let badge: Int?
  /// The name of a sound file, or `default`.
  public let sound: String?
  /// The app is to be woken in the background.
  public let wakesApp: Bool

  /// - Parameter payload: The JSON of the notification.
  /// - Returns: `nil` when it is no JSON object with an object `aps`.
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

  /// Whether the person sees or hears anything.
  public var isVisible: Bool {
    title != nil || subtitle != nil || body != nil || badge != nil || sound != nil
  }

  /// Title, subtitle and body on one line: what a terminal prints for it.
  public var summary: String {
    [title, subtitle, body].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: " – ")
  }
}

extension JSONValue {
  /// The member of exactly this name: Apple's keys do not ignore letter case.
  fileprivate func member(_ name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// A text of an alert; without it the key of its translation, which only the app could look up.
  fileprivate func text(or key: String, for name: String) -> String? {
    if case .string(let text)? = member(name) { return text }
    if case .string(let text)? = member(key) { return text }
    return nil
  }
}

/// Texts that wait for their turn to be shown over the app: iOS drops an alert that is presented
/// while another is up, or before the screen is.
public struct AlertQueue: Sendable {
  private var waiting: [String] = []
  private var isShowing = false
  private var hasScreen = false

  public init() {}

  /// - Returns: What to present now.
  public mutating func add(_ text: String) -> String? {
    waiting.append(text)
    return next()
  }

  /// The screen has appeared, or gone.
  /// - Returns: What to present now.
  public mutating func screen(isThere: Bool) -> String? {
    hasScreen = isThere
    // An alert goes with its screen.
    if !isThere { isShowing = false }
    return next()
  }

  /// The person has closed the alert.
  /// - Returns: What to present now.
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
