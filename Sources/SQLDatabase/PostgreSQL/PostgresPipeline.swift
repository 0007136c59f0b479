import CPostgres

/// Many statements for one wait: they are sent one behind the other, and their results are read
/// together. On a network a batch costs one round trip then, not one for each statement.
/// - SeeAlso: <https://www.postgresql.org/docs/current/libpq-pipeline-mode.html>
extension PostgresConnection {
  /// Sends all that `body` runs without waiting; waits at the end.
  ///
  /// For statements that give no rows and whose counts of changes nobody asks for. One that fails
  /// keeps those behind it from being done. Within another such call it becomes a part of that.
  /// - Throws: What `body` throws, else the error of the first statement that failed.
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
    sentCount = 0
    isPipelining = true
  }

  /// Prepares a statement and asks what it takes, for one wait. Behind a pooler a second wait might
  /// be for another session, which knows nothing of it.
  /// - Parameter name: When it is empty the next one takes its place.
  /// - Returns: The types of its parameters.
  func parameters(ofPreparing text: String, as name: String) throws(SQLError) -> [Oid] {
    var types: [Oid] = []
    try enterPipeline()
    let isSent =
      PQsendPrepare(handle, name, text, 0, nil) == 1 && PQsendDescribePrepared(handle, name) == 1
    sentCount = 2
    try leavePipeline { answer in
      types = (0..<PQnparams(answer)).map { PQparamtype(answer, $0) }
    }
    guard isSent else { throw SQLError(postgresConnection: handle) }
    return types
  }

  /// Waits for what was sent; afterwards statements run one by one again.
  /// - Parameter look: Gets each answer that is one of success.
  func leavePipeline(_ look: (OpaquePointer) -> Void = { _ in }) throws(SQLError) {
    isPipelining = false
    var failure: SQLError?
    if PQpipelineSync(handle) == 1 {
      for _ in 0..<sentCount {
        // Each statement's results end with a null.
        while let result = nextResult() {
          defer { PQclear(result) }
          guard PQresultStatus(result) != PGRES_PIPELINE_ABORTED else { continue }
          do {
            try check(result)
            look(result)
          } catch {
            failure = failure ?? error
          }
        }
        if isLost { break }
      }
      // The mark behind the last result.
      if !isLost { PQclear(nextResult()) }
    } else {
      failure = SQLError(postgresConnection: handle)
    }
    sentCount = 0
    if PQexitPipelineMode(handle) != 1, failure == nil {
      failure = SQLError(postgresConnection: handle)
    }
    if let failure { throw failure }
  }
}
