import HubCore
import SQLDatabase

/// Converts internal errors to those that callers of the store see.
package enum PostgresRefusal {
  /// Converts an error; errors that a caller's own closure has thrown are returned unchanged.
  static func answer(_ error: any Error) -> any Error {
    guard let error = error as? SQLError else { return error }
    return switch error.kind {
    case .readOnly:
      StoreError.cannotOpen("the server takes no writes: it is a standby, or is set to read only")
    case .notAllowed:
      StoreError.cannotOpen("\(error.message); grant the database's user that right")
    case .unfitValue:
      HubFailure(
        status: 400,
        message:
          "A text of the request cannot be kept: it has the character U+0000, or is too long.")
    case .lostSnapshot: PostgresSnapshot.Lost()
    default: StoreError.orRefusal(error)
    }
  }

  /// The error for a database that cannot be opened, with advice. The text from libpq about the
  /// address is left out, because it may quote a password.
  package static func opening(_ error: any Error, address: String) -> any Error {
    guard let error = error as? SQLError else { return error }
    guard PostgresConnection.isAddress(address) else {
      return StoreError.cannotOpen(
        "the address cannot be read; it is written postgresql://user@host:5432/database, with "
          + "%-escapes for special characters")
    }
    if case .notAllowed = error.kind {
      // Tables belong to the role that created them, not to the owner of the database.
      let isOfTables = ["table", "sequence", "view"].contains {
        error.message.contains("permission denied for \($0)")
          || error.message.contains("owner of \($0)")
      }
      return StoreError.cannotOpen(
        isOfTables
          ? "\(error.message); the tables were made by another user: connect as that one, or make "
            + "this one a member of it with GRANT"
          : "\(error.message); the database's user must be allowed to create tables: make it the "
            + "owner of the database, or GRANT CREATE ON SCHEMA public")
    }
    guard error.kind == .cannotOpen else { return answer(error) }
    let advice = advice.first { row in row.words.contains { error.message.contains($0) } }?.text
    return StoreError.cannotOpen(advice.map { "\(error.message); \($0)" } ?? error.message)
  }

  /// Advice by words in messages of the server and of libpq; messages in another language get none.
  private static let advice: [(words: [String], text: String)] = [
    (
      ["session is read-only", "session is not read-only", "hot standby", "not read-write"],
      "only a standby was found; name the primary in the address, or several hosts"
    ),
    (
      ["password authentication failed", "no password supplied", "password retrieved from file"],
      "check the user and the password: in the address, PGPASSWORD or the file PGPASSFILE names"
    ),
    (["role \"", "authentication failed"], "check the user's name, and pg_hba.conf of the server"),
    (["older than"], "Belfry wants PostgreSQL 15 or newer: update the server, or name another"),
    (["no pg_hba.conf entry"], "allow this machine and user in pg_hba.conf of the server"),
    (["database \""], "create the database with `createdb`, or correct its name in the address"),
    (
      ["too many clients", "remaining connection slots", "too many connections"],
      "raise max_connections of the server, or run fewer nodes"
    ),
    (["invalid port number"], "correct that part of the address"),
    (["not UTF8"], "make one with `createdb --encoding UTF8 --template template0`"),
    (["starting up", "shutting down"], "wait until the server has started"),
    (
      [
        "could not translate host name", "could not connect", "Connection refused",
        "timeout expired",
        "No such file or directory", "No route to host",
      ], "check host and port, and that the server runs"
    ),
  ]
}

extension StoreError {
  /// The connection was lost during a commit.
  static let unclearCommit = StoreError.engine(
    code: 0,
    message:
      "the connection to the database was lost at the end of a write; whether it was written "
      + "is not known: look before you repeat it")
}
