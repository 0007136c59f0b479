extension HubFailure {
  /// A store that cannot answer is 503, which every client tries again later.
  package init(_ error: StoreError) {
    switch error {
    case .noHub: self = .noHub
    case .hubExists: self.init(status: 409, message: "SubCode=40900. Conflict")
    case .policyExists: self.init(status: 409, message: "SubCode=40900. Conflict: \(error)")
    default: self.init(status: 503, message: "The service cannot answer now: \(error)")
    }
  }
}

/// Runs work on the store and turns what it throws into what the client is told.
func answering<Value>(
  _ work: () async throws -> Value
) async throws(HubFailure) -> Value {
  do {
    return try await work()
  } catch let failure as HubFailure {
    throw failure
  } catch let error as StoreError {
    throw HubFailure(error)
  } catch is CancellationError {
    throw HubFailure(status: 503, message: "The request was cancelled")
  } catch {
    throw HubFailure(status: 500, message: "An internal error occurred")
  }
}
