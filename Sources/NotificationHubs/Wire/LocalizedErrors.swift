public import Foundation

// Makes `localizedDescription`, which alerts and logs show, equal to `description`; the default is
// "The operation could not be completed".

extension NotificationHubError: LocalizedError {
  /// The same as ``description``.
  public var errorDescription: String? { description }
  /// Advice on how to resolve the error; `nil` for most kinds.
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
  /// The same as ``description``.
  public var errorDescription: String? { description }
}

extension TagExpressionError: LocalizedError {
  /// The same as ``description``.
  public var errorDescription: String? { description }
}

extension WireFormatError: LocalizedError {
  /// The same as ``description``.
  public var errorDescription: String? { description }
}

extension PayloadError: LocalizedError {
  /// The same as ``description``.
  public var errorDescription: String? { description }
}
