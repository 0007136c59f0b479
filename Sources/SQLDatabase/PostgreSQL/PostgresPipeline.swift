import CPostgres

/// Sends many statements for one wait: they are sent one after the other, and their results are
/// read together. On a network a batch then costs one round trip, not one for each statement.
/// - SeeAlso: <https://www.postgresql.org/docs/current/libpq-pipeline-mode.html>
extension PostgresConnection {
  /// Sends all statements that `body` runs without waiting; waits at the end.
  ///
  /// For statements whose rows and counts of changes `body` does not need. A statement that is
  /// still on loan afterwards has its rows then, from the first one; those of others are dropped. A
  /// failed statement skips those behind it. A nested call becomes a part of the outer one.
  /// - Throws: The error of `body`, or else that of the first failed statement.
  package func pipelined(_ body: () throws -> Void) throws {
    if isPipelining { return try body() }
    try enterPipeline()
    do {
      try body()
    } catch {
      try? leavePipeline()
      throw error
    }
    try leavePipeline()
  }

  func enterPipeline() throws(SQLError) {
    guard PQenterPipelineMode(handle) == 1 else { throw SQLError(postgresConnection: handle) }
    sent.removeAll(keepingCapacity: true)
    isPipelining = true
  }

  /// Prepares a statement and describes its parameters in one round trip. Behind a pooler a second
  /// round trip might reach another session, which does not know the statement.
  /// - Parameter name: The name; the next statement replaces one with an empty name.
  /// - Returns: The types of its parameters.
  func parameters(ofPreparing text: String, as name: String) throws(SQLError) -> [Oid] {
    var types: [Oid] = []
    try enterPipeline()
    let isSent =
      PQsendPrepare(handle, name, text, 0, nil) == 1 && PQsendDescribePrepared(handle, name) == 1
    sent = [nil, nil]
    try leavePipeline { answer in
      types = (0..<PQnparams(answer)).map { PQparamtype(answer, $0) }
    }
    guard isSent else { throw SQLError(postgresConnection: handle) }
    return types
  }

  /// Waits for the sent statements; afterwards statements run one by one again.
  /// - Parameter look: Called with each successful reply.
  func leavePipeline(_ look: (OpaquePointer) -> Void = { _ in }) throws(SQLError) {
    isPipelining = false
    var failure: SQLError?
    if PQpipelineSync(handle) == 1 {
      for statement in sent {
        // Each statement's results end with a null.
        while let result = nextResult() {
          var owned: OpaquePointer? = result
          defer { PQclear(owned) }
          guard PQresultStatus(result) != PGRES_PIPELINE_ABORTED else { continue }
          do {
            try check(result)
            look(result)
            if let statement, PQresultStatus(result) == PGRES_TUPLES_OK,
              statement.driver.isLent, statement.driver.lastLoan == statement.loan
            {
              statement.driver.take(result)
              owned = nil
            }
          } catch {
            failure = failure ?? error
          }
        }
        if isLost { break }
      }
      // The synchronization point behind the last result.
      if !isLost { PQclear(nextResult()) }
    } else {
      failure = SQLError(postgresConnection: handle)
    }
    sent.removeAll(keepingCapacity: true)
    if PQexitPipelineMode(handle) != 1, failure == nil {
      failure = SQLError(postgresConnection: handle)
    }
    if let failure { throw failure }
  }
}
