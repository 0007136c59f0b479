/// An error of the store.
package enum StoreError: Error, Hashable, CustomStringConvertible {
  /// A hub of that name (letter case aside) exists.
  case hubExists(String)
  /// There is no such hub.
  case noHub
  /// A policy of that name exists in the hub, or in the namespace.
  case policyExists(String)
  /// The hub has its maximum number of something (`tags`, `templates`).
  case quota(String, limit: Int)
  /// So much work is waiting for the caller, or for the hub, that more would wait for long.
  case busy
  /// The database file cannot be opened, created or written; the text says which and why.
  case cannotOpen(String)
  /// The disk is full; the work may be retried once there is room.
  case diskFull
  /// Another process keeps the database locked.
  case locked
  /// The database is damaged, or the file is not a database.
  case corrupt(String)
  /// A newer Belfry wrote the database: its schema version, and the newest this build knows.
  case newerSchema(found: Int, known: Int)
  /// The engine refused; `code` is its own number, for SQLite the extended result code.
  case engine(code: Int32, message: String)
  /// A sealed secret does not open under the master key.
  case sealedSecret
  /// It is the target of a move that was begun and is not complete.
  case unfinishedMove
  /// Another node has taken this work over; nothing was written.
  case leaseLost
  /// The store has been closed.
  case closed

  /// Safe to log or send: no SQL, no values.
  package var description: String {
    switch self {
    case .hubExists(let name): "a hub named '\(name)' exists"
    case .noHub: "no such hub"
    case .policyExists(let name): "an access policy named '\(name)' exists"
    case .quota(let what, let limit):
      "with this the hub would have more than \(limit) different \(what); bring fewer new ones, or let "
        + "the operator of this server raise \(what)PerHub"
    case .busy: "too many requests with this key wait already"
    case .cannotOpen(let what): "cannot use the database: \(what)"
    case .diskFull: "the disk that holds the database is full; make room and try again"
    case .locked: "the database is locked by another process"
    case .corrupt(let what):
      "the database is damaged (\(what)); restore a backup, or save with `belfry export` what can be read"
    case .newerSchema(let found, let known):
      "the database has schema version \(found), this belfry knows up to \(known); use a newer belfry"
    case .engine(let code, let message): "storage engine error \(code): \(message)"
    case .sealedSecret:
      "a stored secret does not open with this master key; start with the key it was sealed with. After "
        + "`belfry key rotate` that is the new one: copy master.key from where it was rotated"
    case .unfinishedMove:
      "a move into it is not finished; run the same `belfry move` again, or remove the database and "
        + "start over"
    case .leaseLost: "another node has taken this work over"
    case .closed: "the store is closed"
    }
  }
}

/// Whether a store can do its work at this moment, for health checks.
package enum StoreCondition: Hashable, Sendable {
  /// Reads and writes work.
  case healthy
  /// Data can be read, but not written: the disk is full, or another process holds the database.
  /// Accepted data is safe; the text gives the reason and advice.
  case readOnly(reason: String)
  /// Neither reads nor writes are reliable: the database is damaged, or closed. The text gives the
  /// reason and advice.
  case unavailable(reason: String)
  /// The database works, but this node must not use it: it has not been heard of in time, or is too
  /// old. The text says which.
  case leaseLost(reason: String)
}

extension StoreError {
  /// The condition of the store as a whole that the error shows; `nil` when it concerns only the
  /// request.
  package var condition: StoreCondition? {
    switch self {
    case .diskFull, .locked: .readOnly(reason: description)
    case .cannotOpen, .corrupt, .newerSchema, .engine, .unfinishedMove, .closed:
      .unavailable(reason: description)
    case .hubExists, .noHub, .policyExists, .quota, .busy, .sealedSecret, .leaseLost: nil
    }
  }
}
