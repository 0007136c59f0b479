public import Foundation

/// A transport that hands on a reply while it comes. A client that has none asks from time to time
/// where it would be told.
public protocol StreamingTransport: HTTPTransport {
  /// Sends the request, and gives the body of a 2xx reply to `receive` piece by piece until the
  /// server ends it. It may go on for hours; a hub writes something every 15 seconds.
  ///
  /// - Parameter receive: Called for one piece after the other. What it throws ends the reply.
  /// - Returns: The reply, without a body that was handed on.
  /// - Throws: When there is no reply, it breaks off, or `receive` throws.
  func stream(
    _ request: TransportRequest, _ receive: @escaping @Sendable (Data) throws -> Void
  ) async throws -> TransportReply
}
