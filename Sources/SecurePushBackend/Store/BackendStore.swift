package import Cryptography
import Foundation
package import SQLDatabase

/// What the backend keeps: messages with sealed payloads, whose device is whose, and who asked for
/// what.
package final class BackendStore: Sendable {
  let database: DatabaseThread
  let sealer: SecretSealer

  /// - Parameters:
  ///   - open: Makes a connection; the schema is brought up to date here.
  ///   - key: Payloads are sealed under it; without it they cannot be read again.
  package init(
    key: MasterKey, open: @escaping @Sendable () throws -> any SQLConnection
  ) throws {
    sealer = SecretSealer(key: key)
    database = try DatabaseThread {
      let connection = try open()
      try connection.migrate(with: BackendSchema.migrations)
      return connection
    }
  }

  package func close() async { await database.close() }

  /// Answers only when the database can be read and written.
  func check() async throws {
    try await database.run { connection in
      _ = try connection.statement("SELECT 1").step()
    }
  }
}

extension Date {
  /// Milliseconds since 1970.
  var storedTime: Int64 {
    Int64(min(max(timeIntervalSince1970 * 1000, 0), 1e15).rounded())
  }

  init(storedTime: Int64) { self.init(timeIntervalSince1970: Double(storedTime) / 1000) }
}
