public import Foundation

// `localizedDescription`, which alerts and logs show, says what `description` says; without this it
// is "The operation could not be completed".

extension NotificationHubError: LocalizedError {
  public var errorDescription: String? { description }
  public var recoverySuggestion: String? {
    switch kind {
    case .unauthorized:
      missingRight.map { "Use the key of a policy that has the right \($0)." }
        ?? "Check the key, the name of its policy, the name of the hub, and this machine's clock."
    case .unreachable: "Check the address, and that the hub is running and can be reached."
    case .quotaExceeded, .serverBusy:
      retryAfter.map { "Try again in \($0) seconds." } ?? "Try again later."
    default: nil
    }
  }
}

extension ConnectionStringError: LocalizedError {
  public var errorDescription: String? { description }
}

extension TagExpressionError: LocalizedError {
  public var errorDescription: String? { description }
}

extension WireFormatError: LocalizedError {
  public var errorDescription: String? { description }
}

extension PayloadError: LocalizedError {
  public var errorDescription: String? { description }
}
