import SQLDatabase

/// The address of a PostgreSQL database in libpq's format.
enum DatabaseAddress {
  /// The fault in an address, as far as its text shows; `nil` if there is none.
  static func fault(_ text: String) -> String? {
    guard isAddress(text) else {
      return
        "must be the address of a PostgreSQL database, such as postgresql://belfry@127.0.0.1/belfry"
    }
    guard PostgresConnection.isAddress(text) else {
      return "cannot be read as the address of a PostgreSQL database; it is written "
        + "postgresql://user@host:5432/database, with %-escapes for special characters"
    }
    return nil
  }

  /// Whether the text is an address, and not a path.
  static func isAddress(_ text: String) -> Bool { isURL(text) || text.contains("=") }

  /// The error for a password in the arguments of a command.
  static let openPassword =
    "other users of this machine can read a password in the command line: pass it in PGPASSWORD or "
    + "the file that PGPASSFILE names, or the address in the environment"

  /// Reads an argument of a command.
  static let reader = Reader<String> { text, name throws(UsageError) in
    if let fault = fault(text) { throw UsageError("\(name) \(fault)") }
    guard !hasPassword(text) else { throw UsageError("\(name): \(openPassword)") }
    return text
  }

  /// Whether the text contains a password, or may contain one.
  static func hasPassword(_ text: String) -> Bool { shown(text) != text }

  /// The address without anything that may be a password; in doubt it shows less.
  static func shown(_ text: String) -> String {
    guard isURL(text), let start = text.firstRange(of: "://")?.upperBound else {
      return text.lowercased().contains("password") ? "(hidden)" : text
    }
    var rest = String(text[start...])
    if let query = rest.firstIndex(of: "?"), rest[query...].lowercased().contains("password") {
      rest = rest[..<query] + "?…"
    }
    // Everything up to the last one: a password may have been written without escapes.
    if let end = rest.lastIndex(of: "@"), let colon = rest[..<end].firstIndex(of: ":") {
      rest = rest[..<colon] + ":…" + rest[end...]
    }
    return text[..<start] + rest
  }

  private static func isURL(_ text: String) -> Bool {
    text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
  }
}
