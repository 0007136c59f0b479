/// A refusal as the client will see it (docs/protocol/rest.md, section 1.6).
package struct HubFailure: Error, Hashable, CustomStringConvertible {
  /// The HTTP status.
  package let status: Int
  /// The text in front of `.TrackingId:`; `nil` means an empty body, as in the original service for
  /// a missing right.
  package let message: String?
  /// Whole seconds for the `Retry-After` header.
  package let retryAfter: Int?
  /// A hint for people, in a header of our own: details that the text omits because the original's
  /// does (docs/protocol/sas.md, section 6). It never reveals whether a hub exists. Not compared.
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

  /// The same failure with a hint for people.
  func hinting(_ hint: String) -> HubFailure {
    HubFailure(status: status, message: message, retryAfter: retryAfter, hint: hint)
  }

  package var description: String { message ?? "status \(status)" }

  /// 404: the hub does not exist.
  package static let noHub = HubFailure(
    status: 404, message: "No service is hosted at the specified address.")
  /// 403 without a body: the token is valid, but its policy lacks the right.
  package static let missingRight = HubFailure(status: 403, message: nil)
}

extension HubFailure {
  /// A store that cannot answer is 503, which every client retries later.
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
  /// The error for the client when work on the store has thrown one.
  init(answering error: any Error) {
    self =
      switch error {
      case let failure as HubFailure: failure
      case let error as StoreError: HubFailure(error)
      case is CancellationError: HubFailure(status: 503, message: "The request was cancelled")
      default: HubFailure(status: 500, message: "An internal error occurred")
      }
  }

  /// Time before a retry, in seconds: a lock is short, a full disk lasts until somebody has made
  /// room, a damaged file until it is replaced.
  private static func retryAfter(_ error: StoreError) -> Int {
    switch error {
    case .locked: 2
    case .corrupt, .newerSchema, .sealedSecret: 60
    default: 10
    }
  }
}

/// Runs work on the store and converts its errors to those for the client.
func answering<Value>(
  _ work: () async throws -> Value
) async throws(HubFailure) -> Value {
  do { return try await work() } catch { throw HubFailure(answering: error) }
}
