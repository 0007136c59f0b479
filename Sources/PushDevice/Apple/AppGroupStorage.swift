#if canImport(Security)
  public import Foundation
  // The stand-in of script/check-example has the app groups.
  import Security

  /// The storage of an app and its extensions: files in the container of their app group, secrets
  /// in the keychain.
  public struct AppGroupStorage: DeviceStorage {
    private let group: String
    private let files: FileStorage?
    private let secrets: KeychainStorage

    /// - Parameters:
    ///   - group: The app group of the entitlement `com.apple.security.application-groups`.
    ///   - keychainGroup: The keychain access group; `nil` for the first of the entitlement.
    public init(group: String, keychainGroup: String? = nil) {
      self.group = group
      files = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group).map {
        FileStorage(directory: $0.appending(path: "PushDevice"))
      }
      secrets = KeychainStorage(group: keychainGroup)
    }

    public func load(_ item: StoredItem) throws(StorageError) -> Data? {
      if item.isSecret { return try secrets.load(item) }
      return try container().load(item)
    }

    public func update(
      _ item: StoredItem, _ change: (inout Data?) -> Void
    ) throws(StorageError) {
      let files = try container()
      guard item.isSecret else { return try files.update(item, change) }
      // The keychain has no step that reads and writes.
      do { try files.holdingLock { try secrets.update(item, change) } } catch {
        throw StorageError(error)
      }
    }

    private func container() throws(StorageError) -> FileStorage {
      guard let files else {
        throw .failed("the entitlements do not have the app group '\(group)'")
      }
      return files
    }
  }
#endif
