#if canImport(Security)
  public import Foundation
  import Security

  /// The keychain, for the secrets of an app and its extensions.
  ///
  /// Items can be read after the first unlock, also while the device is locked again, and are in no
  /// backup: a restored device has none, and gets an id of its own.
  public struct KeychainStorage: DeviceStorage {
    /// The attempts at a change that another process comes between.
    private static let attempts = 3

    private let service: String
    private let group: String?

    /// - Parameters:
    ///   - service: Sets the items of several stores of one app apart.
    ///   - group: The keychain access group that app and extensions share; `nil` for the first of
    ///     the entitlement.
    public init(service: String = "belfry.push-device", group: String? = nil) {
      self.service = service
      self.group = group
    }

    public func load(_ item: StoredItem) throws(StorageError) -> Data? {
      var query = query(item)
      query[kSecReturnData as String] = true
      var found: CFTypeRef?
      let status = SecItemCopyMatching(NSDictionary(dictionary: query) as CFDictionary, &found)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess else { throw StorageError(status) }
      return found as? Data
    }

    public func update(
      _ item: StoredItem, _ change: (inout Data?) -> Void
    ) throws(StorageError) {
      for _ in 1...Self.attempts {
        let old = try load(item)
        var data = old
        change(&data)
        if data == old { return }
        let status = write(data, item, isNew: old == nil)
        // Another process added or removed the item in between.
        if status == errSecDuplicateItem || status == errSecItemNotFound { continue }
        guard status == errSecSuccess else { throw StorageError(status) }
        return
      }
      // An item that can neither be found nor added belongs to another access group, for example.
      throw .failed("the keychain has and has not the item '\(item.name)'")
    }

    private func write(_ data: Data?, _ item: StoredItem, isNew: Bool) -> OSStatus {
      let query = query(item)
      guard let data else {
        let status = SecItemDelete(NSDictionary(dictionary: query) as CFDictionary)
        return status == errSecItemNotFound ? errSecSuccess : status
      }
      guard isNew else {
        let values = NSDictionary(dictionary: [kSecValueData as String: data])
        return SecItemUpdate(
          NSDictionary(dictionary: query) as CFDictionary, values as CFDictionary)
      }
      var entry = query
      entry[kSecValueData as String] = data
      entry[kSecAttrAccessible as String] = kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
      return SecItemAdd(NSDictionary(dictionary: entry) as CFDictionary, nil)
    }

    private func query(_ item: StoredItem) -> [String: Any] {
      var query: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword, kSecAttrService as String: service,
        kSecAttrAccount as String: item.name,
        // The Mac's file-based keychain knows neither groups nor protection.
        kSecUseDataProtectionKeychain as String: true,
      ]
      if let group { query[kSecAttrAccessGroup as String] = group }
      return query
    }
  }

  extension StorageError {
    fileprivate init(_ status: OSStatus) {
      self =
        status == errSecInteractionNotAllowed
        ? .locked : .failed("the keychain refused (\(status))")
    }
  }
#endif
