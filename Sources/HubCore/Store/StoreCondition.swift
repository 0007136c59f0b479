/// Whether a store can do its work at this moment, for those who ask after the server's health.
package enum StoreCondition: Hashable, Sendable {
  /// Reads and writes are answered.
  case healthy
  /// What is kept can be read, but nothing can be written: the disk is full, or another process
  /// holds the database. What was accepted is safe; the text says why and what to do.
  case readOnly(reason: String)
  /// Neither can be relied on: the database is damaged, or closed. The text says why and what to do.
  case unavailable(reason: String)

  /// `nil` while the store is healthy. Without values, so that it may be shown to anyone.
  package var reason: String? {
    switch self {
    case .healthy: nil
    case .readOnly(let reason), .unavailable(let reason): reason
    }
  }
}

extension StoreError {
  /// What a refusal says about the store as a whole; `nil` when it concerns only what was asked.
  package var condition: StoreCondition? {
    switch self {
    case .diskFull, .locked: .readOnly(reason: description)
    case .cannotOpen, .corrupt, .newerSchema, .engine, .closed: .unavailable(reason: description)
    case .hubExists, .noHub, .policyExists, .quota, .sealedSecret: nil
    }
  }
}
