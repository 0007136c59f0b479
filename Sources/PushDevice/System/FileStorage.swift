public import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A directory with a file for each item, which other users cannot read. Secrets are files too:
/// on Apple's systems use `AppGroupStorage`, which keeps them in the keychain.
public struct FileStorage: DeviceStorage {
  private let directory: URL

  /// - Parameter directory: Created on the first write.
  public init(directory: URL) { self.directory = directory }

  public func load(_ item: StoredItem) throws(StorageError) -> Data? {
    do { return try read(item) } catch { throw StorageError(error) }
  }

  public func update(
    _ item: StoredItem, _ change: (inout Data?) -> Void
  ) throws(StorageError) {
    do {
      try FileManager.default.createDirectory(
        at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      try holdingLock {
        var data = try read(item)
        let old = data
        change(&data)
        if data != old { try write(data, item) }
      }
    } catch {
      throw StorageError(error)
    }
  }

  private func file(_ item: StoredItem) -> URL { directory.appending(path: item.name) }

  private func read(_ item: StoredItem) throws -> Data? {
    do { return try Data(contentsOf: file(item)) } catch CocoaError.fileReadNoSuchFile {
      return nil
    }
  }

  private func write(_ data: Data?, _ item: StoredItem) throws {
    guard let data else { return try FileManager.default.removeItem(at: file(item)) }
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
      try data.write(
        to: file(item), options: [.atomic, .completeFileProtectionUntilFirstUserAuthentication])
    #else
      try data.write(to: file(item), options: .atomic)
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o600], ofItemAtPath: file(item).path)
    #endif
  }

  /// Keeps other processes out for the moment of a read and a write. The lock ends with its file
  /// descriptor, so a crash leaves none behind. Nothing is awaited meanwhile: iOS ends an app that it
  /// suspends with a lock on a file of an app group.
  private func holdingLock(_ body: () throws -> Void) throws {
    let descriptor = open(directory.appending(path: ".lock").path, O_CREAT | O_RDWR, 0o600)
    guard descriptor >= 0 else { throw CocoaError(.fileWriteNoPermission) }
    defer { close(descriptor) }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw CocoaError(.fileLocking) }
    }
    try body()
  }
}

extension StorageError {
  fileprivate init(_ error: any Error) {
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
      // The answer for a protected file before the first unlock.
      if (error as? CocoaError)?.code == .fileReadNoPermission {
        self = .locked
        return
      }
    #endif
    self = .failed("\(error)")
  }
}
