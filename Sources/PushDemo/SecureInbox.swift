public import Foundation
public import NotificationHubs
import SecurePush
import Wire

/// Turns a push into readable text: opens the sealed payload on the device, or fetches the payload
/// from the backend. Both the app and its notification service extension use it.
public struct SecureInbox: Sendable {
  /// The key in a notification's `userInfo` under which the text that was opened or fetched is
  /// stored. A message that may be read only once cannot be fetched again on a tap.
  private static let textKey = "PushDemo.text"

  /// The `userInfo` of a notification with this text, to be added to the push's own members if
  /// there are any: the app shows the same text when the notification is tapped.
  public static func userInfo(showing text: String) -> [String: String] { [textKey: text] }

  /// The `userInfo` of a notification with a general text: the app fetches the message when it is
  /// tapped.
  static func userInfo(fetching payload: Data) -> [String: String] {
    SecureMessage(payload: payload).map { [SecureMessage.idName: $0.id] } ?? [:]
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

  private let installationID: String
  private let secrets: any SecretStore
  private let backend: SecurePushClient?

  /// - Parameter backend: `nil` if no user is signed in.
  init(installationID: String, secrets: any SecretStore, backend: SecurePushClient?) {
    self.installationID = installationID
    self.secrets = secrets
    self.backend = backend
  }

  /// The inbox of the app's signed-in user, for its notification service extension.
  /// - Returns: `nil` if no user is signed in, or the secrets cannot be read.
  public init?(
    secrets: any SecretStore, transport: any HTTPTransport = URLSessionTransport.shared
  ) {
    guard let session = try? DemoSession.load(from: secrets) else { return nil }
    self.init(
      installationID: session.installationID, secrets: secrets,
      backend: session.client(transport, secrets: secrets))
  }

  /// - Parameter payload: The payload of the push, or the `userInfo` of its notification, as JSON.
  /// - Returns: `nil` if it is not a secure message: show it unchanged.
  public func content(of payload: Data) async -> Content? {
    if case .string(let text)? = (try? JSONValue.parse(payload))?[Self.textKey] {
      return .text(text, offline: true)
    }
    guard let message = SecureMessage(payload: payload) else { return nil }
    if let sealed = message.sealed, let text = open(sealed, id: message.id) {
      return .text(text, offline: true)
    }
    guard let backend else { return .generic(SecureMessage.genericAlert) }
    do {
      return .text(try await backend.payload(of: message.id).payload, offline: false)
    } catch SecurePushClientError.notFound, SecurePushClientError.gone {
      return Content.none
    } catch {
      return .generic(SecureMessage.genericAlert)
    }
  }

  /// - Returns: `nil` if the payload must be fetched: this device has lost its key, or the push was
  ///   tampered with.
  private func open(_ sealed: SealedPayload, id: String) -> String? {
    guard let stored = try? secrets.load(DemoSession.keysName),
      let ring = try? SealingKeyRing(storage: stored),
      let payload = try? ring.open(sealed, id: id, installationID: installationID)
    else { return nil }
    return String(data: payload, encoding: .utf8)
  }
}
