public import Foundation
public import NotificationHubs
import SecurePush
import Wire

/// Turns a push into what the person may read: opens the sealed payload on the device, or fetches
/// the payload from the backend. The app and its notification service extension use the same.
public struct SecureInbox: Sendable {
  /// Where a notification's `userInfo` keeps the text that was opened or fetched for it. A message
  /// that may be read once cannot be fetched again when the person taps.
  private static let textKey = "PushDemo.text"

  /// What the `userInfo` of a notification with this text has, beside the push's own members if
  /// there are any: the app shows the same when the notification is tapped.
  public static func userInfo(showing text: String) -> [String: String] { [textKey: text] }

  /// The same for a general text: the app fetches the message when the notification is tapped.
  static func userInfo(fetching payload: Data) -> [String: String] {
    SecureMessage(payload: payload).map { [SecureMessage.idName: $0.id] } ?? [:]
  }

  /// What came of a secure message.
  public enum Content: Hashable, Sendable {
    /// - Parameter offline: It was opened on the device; nobody was asked.
    case text(String, offline: Bool)
    /// The payload could not be had: there is no valid sign-in, or no connection. Show this and let
    /// the person open the app.
    case generic(String)
    /// The message is not this user's, or is over: show nothing.
    case none
  }

  private let installationID: String
  private let secrets: any SecretStore
  private let backend: SecurePushClient?

  /// - Parameter backend: `nil` when nobody is signed in.
  init(installationID: String, secrets: any SecretStore, backend: SecurePushClient?) {
    self.installationID = installationID
    self.secrets = secrets
    self.backend = backend
  }

  /// The inbox of the user who is signed in to the app, for its notification service extension.
  /// - Returns: `nil` when nobody is, or the secrets cannot be read.
  public init?(
    secrets: any SecretStore, transport: any HTTPTransport = URLSessionTransport.shared
  ) {
    guard let session = try? DemoSession.load(from: secrets) else { return nil }
    self.init(
      installationID: session.installationID, secrets: secrets,
      backend: session.client(transport, secrets: secrets))
  }

  /// - Parameter payload: The push's, or the `userInfo` of its notification; JSON.
  /// - Returns: `nil` when it is no secure message: show it as it is.
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

  /// - Returns: `nil` when the payload has to be fetched: this device has lost its key, or somebody
  ///   has tampered with the push.
  private func open(_ sealed: SealedPayload, id: String) -> String? {
    guard let stored = try? secrets.load(DemoSession.keysName),
      let ring = try? SealingKeyRing(storage: stored),
      let payload = try? ring.open(sealed, id: id, installationID: installationID)
    else { return nil }
    return String(data: payload, encoding: .utf8)
  }
}
