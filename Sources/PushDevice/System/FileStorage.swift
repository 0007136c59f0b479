public import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A directory with a file for each item, whose contents other users cannot read. The permissions of
/// a directory that exists are left alone. Secrets are files too: on Apple's systems use
/// `AppGroupStorage`, which keeps them in the keychain.
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
    let file = file(item)
    guard let data else { return try FileManager.default.removeItem(at: file) }
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
      try data.write(
        to: file, options: [.atomic, .completeFileProtectionUntilFirstUserAuthentication])
    #else
      // Foundation would create the file for everybody, and change that later.
      let new = directory.appending(path: ".\(item.name)-\(UUID().uuidString)").path
      let descriptor = open(new, O_CREAT | O_EXCL | O_WRONLY, 0o600)
      guard descriptor >= 0 else { throw StorageError(errno) }
      do {
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: data)
        try handle.close()
        guard rename(new, file.path) == 0 else { throw StorageError(errno) }
      } catch {
        unlink(new)
        throw error
      }
    #endif
  }

  /// Keeps other processes out for the moment of a read and a write. The lock ends with its file
  /// descriptor, so a crash leaves none behind. Nothing is awaited meanwhile: iOS ends an app that it
  /// suspends with a lock on a file of an app group.
  func holdingLock(_ body: () throws -> Void) throws {
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
      let attributes: [FileAttributeKey: Any] = [
        .protectionKey: FileProtectionType.completeUntilFirstUserAuthentication
      ]
    #else
      let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
    #endif
    try FileManager.default.createDirectory(
      at: directory, withIntermediateDirectories: true, attributes: attributes)
    let descriptor = open(directory.appending(path: ".lock").path, O_CREAT | O_RDWR, 0o600)
    guard descriptor >= 0 else { throw StorageError(errno) }
    defer { close(descriptor) }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw StorageError(errno) }
    }
    try body()
  }
}

extension StorageError {
  init(_ error: any Error) {
    if let error = error as? StorageError {
      self = error
      return
    }
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
      // The answers for a protected file before the first unlock.
      let code = (error as? CocoaError)?.code
      if code == .fileReadNoPermission || code == .fileWriteNoPermission {
        self = .locked
        return
      }
    #endif
    self = .failed((error as? CocoaError)?.localizedDescription ?? "\(error)")
  }

  /// - Parameter code: A value of `errno`.
  fileprivate init(_ code: Int32) {
    #if os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
      // The answer for a protected file before the first unlock.
      if code == EPERM {
        self = .locked
        return
      }
    #endif
    self = .failed(String(cString: strerror(code)))
  }
}
