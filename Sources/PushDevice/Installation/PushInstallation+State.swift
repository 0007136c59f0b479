public import Foundation

extension PushInstallation {
  /// The condition in which this launch found the device's storage.
  public enum StorageCondition: Hashable, Sendable {
    /// The app's first launch on this device.
    case first
    /// The storage is that of the previous launch.
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
    /// A request is under way.
    case saving
    /// The hub has confirmed the installation.
    case saved(SaveReceipt)
    /// - Parameter retryAt: The next attempt; `nil` if it is made at the next launch, foreground or
    ///   change.
    case failed(RegistrarError, retryAt: Date?)
    /// The app has switched pushes off, and the hub has no installation.
    case disabled
  }
}

extension PushInstallation.State: CustomStringConvertible {
  /// The state in a line, for logs and simple screens; without times, tokens and ids.
  public var description: String {
    switch self {
    case .locked: "waiting until the device is unlocked"
    case .storageFailed(let reason): "storage failed: \(reason)"
    case .waitingForToken(let problem):
      problem.map { "waiting for a token: \($0)" } ?? "waiting for a token"
    case .waitingForSignIn: "waiting until somebody signs in"
    case .pending: "pending"
    case .saving: "saving"
    case .saved(let receipt): "saved, fingerprint \(receipt.fingerprint)"
    case .failed(let error, let retryAt):
      "failed, \(error)" + (retryAt == nil ? "; next at a launch, foreground or change" : "")
    case .disabled: "off"
    }
  }
}

/// The hub's confirmation of an installation.
public struct SaveReceipt: Hashable, Sendable {
  /// Eight hexadecimal digits that stand for everything that was sent, for logs: it tells whether
  /// two registrations differ, and nothing else.
  public let fingerprint: String
  /// When the hub confirmed it.
  public let confirmedAt: Date
}

/// There is nothing to register yet: no token, no sign-in, or the app has switched pushes off.
public struct NotRegistered: Error, Hashable, Sendable, CustomStringConvertible {
  /// The state that explains it.
  public let state: PushInstallation.State

  public var description: String { "the device is not registered: \(state)" }
}
