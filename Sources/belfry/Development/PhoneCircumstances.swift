import Foundation
import PushDevice

/// The circumstances in which a virtual phone runs its app.
struct PhoneCircumstances: Sendable {
  /// The directory with the app's state; `nil` for a new phone.
  var state: URL?
  /// The installation id of a new phone; `nil` for one of its own.
  var installationID: String?
  /// Whether the app was deleted and installed again.
  var isReinstalled = false
  /// The state of another phone whose backup this one was restored from.
  var backup: URL?
  /// The seconds until the phone is unlocked for the first time.
  var lockedFor: Int?
  /// The seconds until the phone has a network.
  var offlineFor: Int?
  /// The seconds after which it gets another token, again and again.
  var rotationInterval: Int?
  /// The user's permission, which is sent as a tag then.
  var permission: PushPermission?
}
