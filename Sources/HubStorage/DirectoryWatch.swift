import Foundation
import HubCore
import SQLDatabase

/// Reads the version of hubs, policies and credentials, which every process that changes them
/// raises in the database.
///
/// Asked with every request, so it has a connection of its own and does not queue for a thread:
/// it reads one row of one page that stays in memory, in a few microseconds.
final class DirectoryWatch: @unchecked Sendable {
  // `lock` guards the connection and the version.
  private let lock = NSLock()
  private var connection: SQLiteConnection?
  private var last: Int = 0

  init(path: String) throws {
    var options = SQLiteConnection.Options()
    options.isReadOnly = true
    options.cacheSize = 64
    options.lockTimeout = 0
    connection = try SQLiteConnection(path: path, options: options)
    last = try read() ?? 0
  }

  func version() throws -> Int {
    lock.lock()
    defer { lock.unlock() }
    guard connection != nil else { throw StoreError.closed }
    do {
      last = try read() ?? last
    } catch let error as SQLError where error.kind == .locked {
      // Another process is recovering the file; what was true a moment ago will do.
    } catch {
      throw StoreError.orRefusal(error)
    }
    return last
  }

  private func read() throws -> Int? {
    guard let row = try connection?.statement("SELECT directory_version FROM store_state") else {
      return nil
    }
    return try row.step() ? Int(row.integer(0)) : nil
  }

  func close() {
    lock.lock()
    defer { lock.unlock() }
    connection?.close()
    connection = nil
  }
}
