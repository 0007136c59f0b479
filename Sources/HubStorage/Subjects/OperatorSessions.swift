package import Foundation
package import HubCore
import SQLDatabase

/// Sessions of operators at the portal.
extension SubjectStore {
  package func addSession(
    _ session: OperatorSession, forgetting limit: Date, keeping most: Int
  ) async throws {
    try await writing(#function) { store in
      try store.sql.change("DELETE FROM operator_session WHERE seen_at < ?1", limit.milliseconds)
      try store.sql.change(
        """
        INSERT INTO operator_session (id, user_key, fingerprint, started_at, seen_at, confirmed_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        """, session.id, session.user,
        session.fingerprint, session.startedAt.milliseconds, session.seenAt.milliseconds,
        session.confirmedAt.milliseconds)
      try store.sql.change(
        """
        DELETE FROM operator_session WHERE user_key = ?1 AND id NOT IN
          (SELECT id FROM operator_session WHERE user_key = ?1 ORDER BY seen_at DESC LIMIT ?2)
        """, session.user, Int64(most))
    }
  }

  package func session(_ id: [UInt8]) async throws -> OperatorSession? {
    try await reading(#function) { store in
      try store.sql.rows(
        """
        SELECT user_key, fingerprint, started_at, seen_at, confirmed_at FROM operator_session
        WHERE id = ?1
        """, id
      ) { row in
        OperatorSession(
          id: id, user: row.text(0), fingerprint: row.bytes(1),
          startedAt: Date(milliseconds: row.integer(2)), seenAt: Date(milliseconds: row.integer(3)),
          confirmedAt: Date(milliseconds: row.integer(4)))
      }.first
    }
  }

  package func updateSession(_ session: OperatorSession) async throws {
    try await writing(#function) { store in
      _ = try store.sql.change(
        "UPDATE operator_session SET seen_at = ?2, confirmed_at = ?3 WHERE id = ?1", session.id,
        session.seenAt.milliseconds, session.confirmedAt.milliseconds)
    }
  }

  package func endSession(_ id: [UInt8]) async throws {
    try await writing(#function) {
      _ = try $0.sql.change("DELETE FROM operator_session WHERE id = ?1", id)
    }
  }
}
