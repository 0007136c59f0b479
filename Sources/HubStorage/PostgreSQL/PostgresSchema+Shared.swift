import Authentication
import SQLDatabase

extension PostgresSchema {
  /// Wrong passwords of operators.
  static let attempts = "failed_sign_in"

  /// What nodes tell each other, so that they act as one.
  static let sharedTables = SharedAttempts.tables(named: attempts)
}
