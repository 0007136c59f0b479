/// An error of the database engine.
package struct SQLError: Error, Hashable, CustomStringConvertible {
  /// The categories that callers can act on; engines map their own codes to these.
  package enum Kind: Hashable, Sendable {
    /// No space on the disk, or the database has reached its size limit.
    case full
    /// Another connection or process holds the lock, and waiting did not help.
    case locked
    /// A conflict with other transactions, and this one was rolled back; a retry can succeed.
    case conflict
    /// The file is damaged.
    case corrupt
    /// The file is not one of this engine's databases.
    case notADatabase
    /// The file, its directory or the connection does not allow writing.
    case readOnly
    /// The file cannot be opened or created.
    case cannotOpen
    /// The operating system failed to read or write, or memory is exhausted.
    case inputOutput
    /// A unique or not-null constraint is violated.
    case constraint
    /// The database user lacks the privilege.
    case notAllowed
    /// A value that the engine cannot store: a text with the character U+0000, or one that is too
    /// long for an index.
    case unfitValue
    /// A newer build wrote the schema; ``SQLError/message`` names both versions.
    case newerSchema(found: Int, known: Int)
    /// The exported snapshot that a transaction is to read has ended.
    case lostSnapshot
    /// Anything else, most likely a defect of ours.
    case other
  }

  package let kind: Kind
  /// The engine's own number; for SQLite the extended result code.
  package let code: Int32
  /// The engine's message. It may name tables and columns, never values.
  package let message: String

  package init(kind: Kind, code: Int32, message: String) {
    self.kind = kind
    self.code = code
    self.message = message
  }

  package var description: String { "\(message) (\(code))" }
}
