public import Foundation
public import NotificationHubs

extension PushInstallation {
  /// The rules by which a device registers.
  public struct Configuration: Hashable, Sendable {
    public var platform = PushPlatform.apns
    /// The delay after a change, in which further changes are collected.
    public var saveDelay = Duration.seconds(1)
    /// The longest delay after the first of several changes.
    public var longestSaveDelay = Duration.seconds(5)
    /// The age of a confirmation at which the device registers again, although nothing has
    /// changed: a hub may have lost it.
    public var refreshInterval = Duration.seconds(7 * 86_400)
    /// The life of the installation at the hub, which is renewed after two thirds of it; `nil` for
    /// the longest that the hub allows.
    public var lifetime: Duration?
    /// Whether the permission to show notifications is a tag: ``PushPermission/tag``.
    public var tagsPermission = false

    public init() {}
  }

  /// The condition in which this launch found the device's storage.
  public enum Beginning: Hashable, Sendable {
    case first
    case continued
    /// The app was deleted and installed again: nobody is signed in, and there are no tags.
    case reinstalled
    /// The storage comes from the backup of another device: it has a new id, and keeps the rest.
    case restored
    /// The record could not be read and was set aside (``StoredItem/damagedRecord``): nobody is
    /// signed in, and there are no tags.
    case damaged
  }

  /// The state of the registration.
  public enum State: Hashable, Sendable {
    /// The device has not been unlocked since it started; nothing is known, and nothing is done.
    case locked
    /// The storage cannot be used.
    case storageFailed(String)
    /// - Parameter problem: Why the system issued no token; `nil` if it has not answered yet.
    case waitingForToken(problem: String?)
    /// The backend registers the device once somebody signs in.
    case waitingForSignIn
    /// Something is to be sent, after the delay that collects changes.
    case pending
    case saving
    case saved(SaveReceipt)
    /// - Parameter retryAt: The next attempt; `nil` if it is made at the next launch, foreground or
    ///   change.
    case failed(RegistrarError, retryAt: Date?)
    /// The app has switched pushes off, and the hub has no installation.
    case disabled
  }

  /// The scope of a sign-out: the user, or the device too.
  public enum SignOutMode: Hashable, Sendable {
    /// The device stays registered, without the user and their tags. With a registrar for signed-in
    /// users it leaves until the next sign-in.
    case keepDevice
    /// The installation is deleted, and registered again without user.
    case deleteDevice
  }
}

/// There is nothing to register yet: no token, no sign-in, or the app has switched pushes off.
public struct NotRegistered: Error, Hashable, Sendable, CustomStringConvertible {
  public let state: PushInstallation.State

  public var description: String { "the device is not registered: \(state)" }
}
