import CSQLite
import Foundation
import Synchronization

/// A file system under SQLite that is the system's own but for syncs, which do nothing: for tests
/// that are about something else than the disk.
enum UnsyncedDisk {
  /// Under which SQLite knows it.
  static let name: String = {
    guard let base = sqlite3_vfs_find(nil) else { return "" }
    // Both live as long as the process.
    let system = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    system.initialize(to: base.pointee)
    let name = "belfry-test-unsynced"
    system.pointee.zName = UnsafePointer(strdup(name))
    system.pointee.pNext = nil
    system.pointee.xOpen = { _, name, file, flags, outFlags in
      guard let file, let base = sqlite3_vfs_find(nil) else { return SQLITE_MISUSE }
      let code = base.pointee.xOpen(base, name, file, flags, outFlags)
      if code == SQLITE_OK { file.pointee.pMethods = unsynced(file.pointee.pMethods) }
      return code
    }
    sqlite3_vfs_register(system, 0)
    return name
  }()

  /// The system's methods, by their address, with another sync. They live as long as the process.
  private static let methods = Mutex<[UInt: UInt]>([:])

  private static func unsynced(
    _ original: UnsafePointer<sqlite3_io_methods>
  ) -> UnsafePointer<sqlite3_io_methods>? {
    let address = methods.withLock { methods -> UInt in
      let key = UInt(bitPattern: original)
      if let known = methods[key] { return known }
      let copy = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
      copy.initialize(to: original.pointee)
      copy.pointee.xSync = { _, _ in SQLITE_OK }
      methods[key] = UInt(bitPattern: copy)
      return UInt(bitPattern: copy)
    }
    return UnsafePointer(bitPattern: address)
  }
}
