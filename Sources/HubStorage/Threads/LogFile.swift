import HubCore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The write-ahead log as a file, to sync it while the connection that writes it goes on writing.
///
/// A sync concerns the file, not who asks for it: what was written before it, by whatever
/// descriptor, is on the disk after it. SQLite holds no locks on this file that closing a
/// descriptor could drop.
final class LogFile: Sendable {
  private let descriptor: Int32

  /// - Parameter path: Of the database; the log must be there, so its connection must have written.
  init(database path: String) throws(StoreError) {
    descriptor = open(path + "-wal", O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw .cannotOpen("its log: \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  func sync() throws(StoreError) {
    #if canImport(Darwin)
      let result = fsync(descriptor)
    #else
      let result = fdatasync(descriptor)
    #endif
    guard result == 0 else {
      throw errno == ENOSPC
        ? .diskFull : .engine(code: errno, message: "sync: \(String(cString: strerror(errno)))")
    }
  }
}
