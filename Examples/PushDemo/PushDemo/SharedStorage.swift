import PushDevice

/// The storage of the app and its notification service extension. The app group is that of both
/// entitlements; the keychain group is the first one there.
enum SharedStorage {
  static let storage = AppGroupStorage(group: "group.com.example.PushDemo")
}
