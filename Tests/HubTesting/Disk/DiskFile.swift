import CSQLite
import Foundation

/// A file of ``FaultyDisk`` as SQLite holds it: its methods, what we know of it, and right behind
/// it the file of the system's own that does the work.
struct DiskFile {
  typealias Pointer = UnsafeMutablePointer<sqlite3_file>

  private var base: sqlite3_file
  private var record: Unmanaged<Record>?

  private final class Record {
    let disk: FaultyDisk
    let path: String
    /// The system syncs the directory with the first sync of a log that it has made.
    var syncsDirectory: Bool

    init(disk: FaultyDisk, path: String, syncsDirectory: Bool) {
      self.disk = disk
      self.path = path
      self.syncsDirectory = syncsDirectory
    }
  }

  static let size = (MemoryLayout<DiskFile>.stride + 15) & ~15

  private static func record(_ file: Pointer?) -> Record {
    // SQLite calls no method of a file before it was opened.
    UnsafeRawPointer(file!).assumingMemoryBound(to: DiskFile.self).pointee.record!
      .takeUnretainedValue()
  }

  private static func real(_ file: Pointer?) -> Pointer {
    UnsafeMutableRawPointer(file!).advanced(by: size).assumingMemoryBound(to: sqlite3_file.self)
  }

  private static func calls(_ file: Pointer?) -> sqlite3_io_methods {
    real(file).pointee.pMethods.pointee
  }

  typealias Open =
    @convention(c) (
      UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?, Pointer?, Int32,
      UnsafeMutablePointer<Int32>?
    ) -> Int32

  static let open: Open = { system, name, file, flags, outFlags in
    guard let file, let base = sqlite3_vfs_find(nil) else { return SQLITE_MISUSE }
    file.pointee.pMethods = nil
    let path = name.map { String(cString: $0) } ?? ""
    let exists = FileManager.default.fileExists(atPath: path)
    let code = base.pointee.xOpen(base, name, real(file), flags, outFlags)
    guard code == SQLITE_OK else { return code }
    let disk = FaultyDisk.of(system)
    disk.opened(path)
    let record = Record(
      disk: disk, path: path,
      syncsDirectory: !exists && flags & SQLITE_OPEN_CREATE != 0 && flags & SQLITE_OPEN_WAL != 0)
    UnsafeMutableRawPointer(file).assumingMemoryBound(to: DiskFile.self).pointee.record =
      .passRetained(record)
    file.pointee.pMethods = UnsafePointer(methods)
    return SQLITE_OK
  }

  // Written once, and only read after.
  nonisolated(unsafe) private static let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
    var methods = sqlite3_io_methods()
    // Without the part for files mapped into memory.
    methods.iVersion = 2
    methods.xClose = { file in
      let code = calls(file).xClose(real(file))
      UnsafeMutableRawPointer(file!).assumingMemoryBound(to: DiskFile.self).pointee.record?
        .release()
      return code
    }
    methods.xRead = { file, bytes, count, offset in
      let record = record(file)
      let code = record.disk.read(record.path)
      guard code == SQLITE_OK else { return code }
      return calls(file).xRead(real(file), bytes, count, offset)
    }
    methods.xWrite = { file, bytes, count, offset in
      let record = record(file)
      var size: Int64 = 0
      _ = calls(file).xFileSize(real(file), &size)
      let code = record.disk.write(
        record.path, UnsafeRawBufferPointer(start: bytes, count: Int(count)), at: Int(offset),
        size: Int(size))
      guard code == SQLITE_OK else { return code }
      return calls(file).xWrite(real(file), bytes, count, offset)
    }
    methods.xTruncate = { file, size in
      let record = record(file)
      record.disk.resize(record.path, to: Int(size))
      return calls(file).xTruncate(real(file), size)
    }
    methods.xSync = { file, _ in
      let record = record(file)
      let code = record.disk.sync(record.path, listing: record.syncsDirectory)
      if code == SQLITE_OK { record.syncsDirectory = false }
      return code
    }
    methods.xFileSize = { calls($0).xFileSize(real($0), $1) }
    methods.xLock = { calls($0).xLock(real($0), $1) }
    methods.xUnlock = { calls($0).xUnlock(real($0), $1) }
    methods.xCheckReservedLock = { calls($0).xCheckReservedLock(real($0), $1) }
    methods.xFileControl = { calls($0).xFileControl(real($0), $1, $2) }
    methods.xSectorSize = { calls($0).xSectorSize(real($0)) }
    methods.xDeviceCharacteristics = { calls($0).xDeviceCharacteristics(real($0)) }
    methods.xShmMap = { calls($0).xShmMap(real($0), $1, $2, $3, $4) }
    methods.xShmLock = { calls($0).xShmLock(real($0), $1, $2, $3) }
    methods.xShmBarrier = { calls($0).xShmBarrier(real($0)) }
    methods.xShmUnmap = { calls($0).xShmUnmap(real($0), $1) }
    let pointer = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    pointer.initialize(to: methods)
    return pointer
  }()
}
