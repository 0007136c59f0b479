import Foundation
import NotificationHubs
public import PushDevice
import SecurePush

/// Turns a secure push into readable text: opens the sealed payload on the device, or fetches the
/// payload from the backend. App and notification service extension use it alike.
public struct SealedMessages: MessageOpening {
  /// The member of a notification's `userInfo` with a text that this device has opened or fetched,
  /// and its mark. A message that may be read only once cannot be fetched again on a tap. A push may
  /// have the members, too: without the device's mark they count for nothing.
  private enum ShownName: String, CodingKey {
    case text = "belfry.text"
    case mark = "belfry.mark"
  }

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
  ///
  /// - Returns: Nothing if nobody is signed in: the text cannot be told from a forged one then.
  public func userInfo(showing text: String) -> [String: String] {
    guard let mark = mark(of: text) else { return [:] }
    return [ShownName.text.rawValue: text, ShownName.mark.rawValue: mark]
  }

  /// The `userInfo` of a notification with a general text: the app fetches the message when it is
  /// tapped.
  public static func userInfo(fetching message: PushMessage) -> [String: String] {
    SecureMessage(payload: message.json).map { [SecureMessage.idName: $0.id] } ?? [:]
  }

  /// - Returns: `nil` if it is not a secure message: show it unchanged.
  public func content(of message: PushMessage) async -> Content? {
    if let text = shownText(of: message) { return .text(text, offline: true) }
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
    text.body.map { userInfo(showing: $0) } ?? [:]
  }

  private func shownText(of message: PushMessage) -> String? {
    struct Shown: Decodable {
      let text: String
      let mark: String
      init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: ShownName.self)
        text = try members.decode(String.self, forKey: .text)
        mark = try members.decode(String.self, forKey: .mark)
      }
    }
    guard let shown = try? message.decode(Shown.self), mark(of: shown.text) == shown.mark else {
      return nil
    }
    return shown.text
  }

  /// - Returns: `nil` if nobody is signed in, or there are no keys.
  private func mark(of text: String) -> String? {
    guard let user = try? PushInstallation.storedUserID(in: storage) else { return nil }
    return try? keys.mark(of: text, for: user)
  }

  /// - Returns: `nil` if the payload must be fetched: this device has lost its key, or the push was
  ///   tampered with.
  private func opened(_ message: SecureMessage) -> String? {
    guard let sealed = message.sealed,
      let user = try? PushInstallation.storedUserID(in: storage),
      let ring = try? keys.ring(of: user), let id = try? storage.load(.installationID),
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
