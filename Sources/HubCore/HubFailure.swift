/// A refusal as the client will see it (docs/protocol/rest.md, section 1.6).
package struct HubFailure: Error, Hashable, CustomStringConvertible {
  /// The HTTP status.
  package let status: Int
  /// The text in front of `.TrackingId:`; `nil` answers with an empty body, as the service does
  /// for a missing right.
  package let message: String?
  /// Whole seconds for the `Retry-After` header.
  package let retryAfter: Int?
  /// For a person, in a header of our own: what the text leaves out because the original's does
  /// (docs/protocol/sas.md, section 6). It never says whether a hub exists. Not compared.
  package let hint: String?

  package init(status: Int, message: String?, retryAfter: Int? = nil, hint: String? = nil) {
    self.status = status
    self.message = message
    self.retryAfter = retryAfter
    self.hint = hint
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.status == right.status && left.message == right.message
      && left.retryAfter == right.retryAfter
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(status)
    hasher.combine(message)
    hasher.combine(retryAfter)
  }

  /// The same refusal with words for a person.
  func hinting(_ hint: String) -> HubFailure {
    HubFailure(status: status, message: message, retryAfter: retryAfter, hint: hint)
  }

  package var description: String { message ?? "status \(status)" }

  /// 404: the hub does not exist.
  package static let noHub = HubFailure(
    status: 404, message: "No service is hosted at the specified address.")
  /// 403 without a body: the token is valid, its policy lacks the right.
  package static let missingRight = HubFailure(status: 403, message: nil)
}

extension HubFailure {
  /// A store that cannot answer is 503, which every client tries again later.
  package init(_ error: StoreError) {
    switch error {
    case .noHub: self = .noHub
    case .hubExists: self.init(status: 409, message: "SubCode=40900. Conflict")
    case .policyExists: self.init(status: 409, message: "SubCode=40900. Conflict: \(error)")
    case .quota: self.init(status: 403, message: "QuotaExceeded: \(error)")
    case .busy:
      self.init(status: 429, message: "TooManyRequests: \(error); try again later", retryAfter: 2)
    default:
      self.init(
        status: 503, message: "The service cannot answer now: \(error)",
        retryAfter: Self.retryAfter(error))
    }
  }
}

extension HubFailure {
  /// When to try again, in seconds: a lock passes soon, a full disk when somebody has made room, a
  /// damaged file not before somebody has brought another.
  private static func retryAfter(_ error: StoreError) -> Int {
    switch error {
    case .locked: 2
    case .corrupt, .newerSchema, .sealedSecret: 60
    default: 10
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
