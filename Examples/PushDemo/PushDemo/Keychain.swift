import Foundation
import PushDemo
import Security

/// The keychain, in the access group that the app shares with its notification service extension.
struct Keychain: SecretStore {
  static let shared = Keychain(service: "PushDemo")

  struct Failure: Error, CustomStringConvertible {
    let status: OSStatus
    var description: String { "the keychain refused (\(status))" }
  }

  let service: String

  func load(_ name: String) throws -> Data? {
    var query = item(name)
    query[kSecReturnData as String] = true
    var found: CFTypeRef?
    let status = SecItemCopyMatching(NSDictionary(dictionary: query) as CFDictionary, &found)
    if status == errSecItemNotFound { return nil }
    guard status == errSecSuccess else { throw Failure(status: status) }
    return found as? Data
  }

  func save(_ data: Data?, as name: String) throws {
    var status = SecItemDelete(NSDictionary(dictionary: item(name)) as CFDictionary)
    guard status == errSecSuccess || status == errSecItemNotFound else {
      throw Failure(status: status)
    }
    guard let data else { return }
    var entry = item(name)
    entry[kSecValueData as String] = data
    // The extension runs while the phone is locked, but not before it was unlocked once; and the
    // keys stay on this device.
    entry[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
    status = SecItemAdd(NSDictionary(dictionary: entry) as CFDictionary, nil)
    guard status == errSecSuccess else { throw Failure(status: status) }
  }

  /// Without a group of its own the system takes the first of the entitlement, which both targets
  /// share.
  private func item(_ name: String) -> [String: Any] {
    [
      kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
      kSecAttrAccount as String: name,
    ]
  }
}
