import CSQLite
package import Foundation

/// A disk under SQLite that fails when it is told to, and remembers what a power cut would leave.
///
/// It stands between SQLite and the file system as a `sqlite3_vfs` of its own; everything is passed
/// on, syncs aside, and noted on the way. Stores use it by its ``name``.
/// - SeeAlso: <https://www.sqlite.org/vfs.html>
package final class FaultyDisk: @unchecked Sendable {
  /// A fault of the disk.
  package enum Fault: Sendable {
    case none
    /// No file can grow.
    case full
    /// Nothing can be written.
    case failsWrites
    /// A sync says that it has failed.
    case failsSyncs
    /// The next read of a file fails, once.
    case failsNextRead
  }

  /// The moment of a power cut.
  package struct PowerCut: Sendable {
    let files: [String: DiskModel.File]
    /// The number that ``cut(at:noting:)`` was given.
    package let note: Int
  }

  /// Under which SQLite knows it.
  package let name = "belfry-test-disk-\(UUID().uuidString)"
  // `lock` guards all that varies here.
  private let lock = NSLock()
  private var currentFault = Fault.none
  private var model = DiskModel()
  private var operations = 0
  private var wantedCuts: Set<Int> = []
  private var note: @Sendable () -> Int = { 0 }
  private var takenCuts: [PowerCut] = []
  /// Both owned by this object.
  private let system = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
  private let systemName: UnsafeMutablePointer<CChar>

  package init() throws {
    guard let base = sqlite3_vfs_find(nil), let copy = strdup(name) else {
      throw ProcessFault("SQLite has no file system")
    }
    systemName = copy
    system.initialize(to: base.pointee)
    system.pointee.zName = UnsafePointer(copy)
    system.pointee.pNext = nil
    system.pointee.szOsFile = Int32(DiskFile.size) + base.pointee.szOsFile
    system.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
    system.pointee.xOpen = DiskFile.open
    system.pointee.xDelete = { system, path, syncsDirectory in
      guard let base = sqlite3_vfs_find(nil), let path else { return SQLITE_MISUSE }
      FaultyDisk.of(system).delete(String(cString: path))
      return base.pointee.xDelete(base, path, syncsDirectory)
    }
    sqlite3_vfs_register(system, 0)
  }

  deinit {
    sqlite3_vfs_unregister(system)
    system.deallocate()
    free(systemName)
  }

  static func of(_ system: UnsafeMutablePointer<sqlite3_vfs>?) -> FaultyDisk {
    // Set once, before the file system was registered.
    Unmanaged<FaultyDisk>.fromOpaque(system!.pointee.pAppData).takeUnretainedValue()
  }

  private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body()
  }

  package var fault: Fault {
    get { locked { currentFault } }
    set { locked { currentFault = newValue } }
  }

  // MARK: Power cuts

  /// Takes what a power cut would leave in front of these operations, counted from 1.
  /// - Parameter noting: Asked at each of the moments; how much had been acknowledged, say.
  package func cut(at operations: Set<Int>, noting: @escaping @Sendable () -> Int) {
    locked {
      wantedCuts = operations
      note = noting
    }
  }

  package var cuts: [PowerCut] { locked { takenCuts } }

  /// Writes, resizes and syncs so far.
  package var operationCount: Int { locked { operations } }

  private func count() {
    operations += 1
    guard wantedCuts.contains(operations) else { return }
    takenCuts.append(PowerCut(files: model.files, note: note()))
  }

  // MARK: What SQLite does

  func opened(_ path: String) {
    locked {
      model.open(path) {
        (try? Data(contentsOf: URL(fileURLWithPath: path))).map(Array.init) ?? []
      }
    }
  }

  private func delete(_ path: String) { locked { model.delete(path) } }

  func read(_ path: String) -> Int32 {
    locked {
      guard case .failsNextRead = currentFault else { return SQLITE_OK }
      currentFault = .none
      return failedRead
    }
  }

  /// - Parameter size: Of the file before.
  func write(_ path: String, _ bytes: UnsafeRawBufferPointer, at offset: Int, size: Int) -> Int32 {
    locked {
      switch currentFault {
      case .full where offset + bytes.count > size: return SQLITE_FULL
      case .failsWrites: return failedWrite
      default: break
      }
      count()
      model.change(path, .write(at: offset, Array(bytes)))
      return SQLITE_OK
    }
  }

  func resize(_ path: String, to size: Int) {
    locked {
      count()
      model.change(path, .resize(size))
    }
  }

  func sync(_ path: String, listing: Bool) -> Int32 {
    locked {
      if case .failsSyncs = currentFault { return failedSync }
      count()
      model.sync(path, listing: listing)
      return SQLITE_OK
    }
  }
}

// Macros that are sums do not reach Swift.
private let failedRead = SQLITE_IOERR | (1 << 8)
private let failedWrite = SQLITE_IOERR | (3 << 8)
private let failedSync = SQLITE_IOERR | (4 << 8)

extension FaultyDisk.PowerCut {
  /// Writes what is left of the files into a directory, under their own names.
  ///
  /// - Parameter keeping: The share of what was not synced that has got to the disk all the same.
  package func leave<Generator: RandomNumberGenerator>(
    in directory: URL, keeping: Double, using generator: inout Generator
  ) throws {
    // In the same order each time, so that a seed repeats it.
    for (path, file) in files.sorted(by: { $0.key < $1.key }) {
      guard let left = DiskModel.left(of: file, keeping: keeping, using: &generator) else {
        continue
      }
      let name = URL(fileURLWithPath: path).lastPathComponent
      try Data(left).write(to: directory.appendingPathComponent(name))
    }
  }
}
