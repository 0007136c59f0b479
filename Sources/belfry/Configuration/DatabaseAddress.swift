import SQLDatabase

/// The address of a PostgreSQL database, as libpq reads it.
enum DatabaseAddress {
  /// What is wrong with an address, as far as its text tells; `nil` when nothing is.
  static func fault(_ text: String) -> String? {
    guard isAddress(text) else {
      return
        "wants the address of a PostgreSQL database, such as postgresql://belfry@127.0.0.1/belfry"
    }
    guard PostgresConnection.isAddress(text) else {
      return "cannot be read as the address of a PostgreSQL database; it is written "
        + "postgresql://user@host:5432/database, with %-escapes for special characters"
    }
    return nil
  }

  /// Whether it is meant as an address, and not as a path.
  static func isAddress(_ text: String) -> Bool { isURL(text) || text.contains("=") }

  /// Said of a password in the words of a command.
  static let openPassword =
    "everybody on this machine can read a password in the words of a command: give it in PGPASSWORD or "
    + "the file that PGPASSFILE names, or the address in the environment"

  /// Of a word of a command.
  static let reader = Reader<String> { text, name throws(UsageError) in
    if let fault = fault(text) { throw UsageError("\(name) \(fault)") }
    guard !hasPassword(text) else { throw UsageError("\(name): \(openPassword)") }
    return text
  }

  /// Whether it holds a password, or may do so.
  static func hasPassword(_ text: String) -> Bool { shown(text) != text }

  /// Without anything that may be a password; rather too little than too much.
  static func shown(_ text: String) -> String {
    guard isURL(text), let start = text.firstRange(of: "://")?.upperBound else {
      return text.lowercased().contains("password") ? "(hidden)" : text
    }
    var rest = String(text[start...])
    if let query = rest.firstIndex(of: "?"), rest[query...].lowercased().contains("password") {
      rest = rest[..<query] + "?…"
    }
    // Whatever the last of them ends: a password may have been written without its escapes.
    if let end = rest.lastIndex(of: "@"), let colon = rest[..<end].firstIndex(of: ":") {
      rest = rest[..<colon] + ":…" + rest[end...]
    }
    return text[..<start] + rest
  }

  private static func isURL(_ text: String) -> Bool {
    text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
  }
}
