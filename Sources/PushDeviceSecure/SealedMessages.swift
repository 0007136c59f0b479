import Foundation
import NotificationHubs
public import PushDevice
import SecurePush

/// Turns a secure push into readable text: opens the sealed payload on the device, or fetches the
/// payload from the backend. App and notification service extension use it alike.
public struct SealedMessages: MessageOpening {
  /// The key in a notification's `userInfo` under which the text that was opened or fetched is
  /// stored. A message that may be read only once cannot be fetched again on a tap.
  private static let textKey = "belfry.text"

  /// The content of a secure message.
  public enum Content: Hashable, Sendable {
    /// - Parameter offline: Whether it was opened on the device, without a request.
    case text(String, offline: Bool)
    /// The payload is unavailable for lack of a valid sign-in or a connection. Show this text and
    /// let the user open the app.
    case generic(String)
    /// The message is not this user's, or has expired: show nothing.
    case none
  }

  private let storage: any DeviceStorage
  private let keys: DeviceKeys
  private let sessions: UserSessions

  init(storage: any DeviceStorage, keys: DeviceKeys, sessions: UserSessions) {
    self.storage = storage
    self.keys = keys
    self.sessions = sessions
  }

  /// The `userInfo` of a notification with this text, to be added to the push's own members if
  /// there are any: the app shows the same text when the notification is tapped.
  public static func userInfo(showing text: String) -> [String: String] { [textKey: text] }

  /// The `userInfo` of a notification with a general text: the app fetches the message when it is
  /// tapped.
  public static func userInfo(fetching message: PushMessage) -> [String: String] {
    SecureMessage(payload: message.json).map { [SecureMessage.idName: $0.id] } ?? [:]
  }

  /// - Returns: `nil` if it is not a secure message: show it unchanged.
  public func content(of message: PushMessage) async -> Content? {
    if let text = Self.shownText(of: message) { return .text(text, offline: true) }
    guard let secure = SecureMessage(payload: message.json) else { return nil }
    if let text = opened(secure) { return .text(text, offline: true) }
    do {
      guard let text = try await fetched(secure) else {
        return .generic(SecureMessage.genericAlert)
      }
      return .text(text, offline: false)
    } catch SecurePushClientError.notFound, SecurePushClientError.gone {
      return Content.none
    } catch {
      return .generic(SecureMessage.genericAlert)
    }
  }

  // MARK: For the service extension

  public func isSealed(_ message: PushMessage) -> Bool {
    SecureMessage(payload: message.json) != nil
  }

  public func open(_ message: PushMessage) -> NotificationText? {
    SecureMessage(payload: message.json).flatMap(opened).map { NotificationText(body: $0) }
  }

  public func fetch(_ message: PushMessage) async -> NotificationText? {
    guard let secure = SecureMessage(payload: message.json) else { return nil }
    return ((try? await fetched(secure)) ?? nil).map { NotificationText(body: $0) }
  }

  public func userInfo(showing text: NotificationText) -> [String: String] {
    text.body.map(Self.userInfo(showing:)) ?? [:]
  }

  private static func shownText(of message: PushMessage) -> String? {
    struct Shown: Decodable {
      let text: String
      enum CodingKeys: String, CodingKey { case text = "belfry.text" }
    }
    return try? message.decode(Shown.self).text
  }

  /// - Returns: `nil` if the payload must be fetched: this device has lost its key, or the push was
  ///   tampered with.
  private func opened(_ message: SecureMessage) -> String? {
    guard let sealed = message.sealed, let ring = try? keys.ring(),
      let id = try? storage.load(.installationID),
      let payload = try? ring.open(
        sealed, id: message.id, installationID: String(decoding: id, as: UTF8.self))
    else { return nil }
    return String(data: payload, encoding: .utf8)
  }

  /// - Returns: `nil` if nobody is signed in.
  private func fetched(_ message: SecureMessage) async throws -> String? {
    guard let user = try PushInstallation.storedUserID(in: storage) else { return nil }
    return try await sessions.client(of: user).payload(of: message.id).payload
  }
}
