public import Foundation

/// A transport that passes on a reply while it arrives. With other transports the client polls
/// instead of receiving events.
public protocol StreamingTransport: HTTPTransport {
  /// Sends the request, and passes the body of a 2xx reply to `receive` piece by piece until the
  /// server ends it. This may take hours; a hub writes something every 15 seconds.
  ///
  /// - Parameter receive: Called for each piece in turn. An error that it throws ends the reply.
  /// - Returns: The reply, without a body that was passed on.
  /// - Throws: An error if there is no reply, the connection breaks, or `receive` throws.
  func stream(
    _ request: TransportRequest, _ receive: @escaping @Sendable (Data) throws -> Void
  ) async throws -> TransportReply
}
