import Foundation
import HubCore
import SQLDatabase

/// Caches the version of hubs, policies and credentials, which every process that changes them
/// raises in the database.
///
/// Asked with every request: changes of this process are visible at once, those of others within
/// ``interval``. A check reads one row of one page that stays in memory; for that it has a
/// connection of its own and does not queue for a thread.
final class DirectoryWatch: @unchecked Sendable {
  // `lock` guards all mutable state.
  private let lock = NSLock()
  private var connection: SQLiteConnection?
  private var last = 0
  private var nextLook = ContinuousClock.now

  private static let interval = Duration.milliseconds(10)

  func connect(to path: String, fileSystem: String?) throws {
    lock.lock()
    defer { lock.unlock() }
    var options = SQLiteConnection.Options()
    options.isReadOnly = true
    options.cacheSize = 64
    options.lockTimeout = 0
    options.fileSystem = fileSystem
    connection = try SQLiteConnection(path: path, options: options)
    last = try read()
  }

  /// Reads the version again when next asked.
  func invalidate() {
    lock.lock()
    defer { lock.unlock() }
    nextLook = .now
  }

  func version() throws -> Int {
    lock.lock()
    defer { lock.unlock() }
    guard connection != nil else { throw StoreError.closed }
    let now = ContinuousClock.now
    guard now >= nextLook else { return last }
    do {
      last = try read()
      nextLook = now + Self.interval
    } catch let error as SQLError where error.kind == .locked {
      // Another process is recovering the file; the last known version will do.
    } catch {
      throw StoreError.orRefusal(error)
    }
    return last
  }

  private func read() throws -> Int {
    guard let row = try connection?.statement("SELECT directory_version FROM store_state"),
      try row.step()
    else { throw StoreError.closed }
    return Int(row.integer(0))
  }

  func close() {
    lock.lock()
    defer { lock.unlock() }
    connection?.close()
    connection = nil
  }
}
