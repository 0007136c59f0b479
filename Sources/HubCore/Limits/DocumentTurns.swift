extension HubService {
  /// A body up to this size, in bytes, is read where the request is served.
  private static let smallDocument = 4 * 1024

  /// Reads a request's body: a large one in the turn of its sender, on a thread of its own.
  ///
  /// - Throws: The error of `read`; also 429 when too much of its sender is waiting.
  func reading<Value: Sendable>(
    _ body: [UInt8], _ read: @escaping @Sendable () throws -> Value
  ) async throws(HubFailure) -> Value {
    try await answering {
      guard body.count > Self.smallDocument else { return try read() }
      return try await store.inTurn(bytes: body.count, read)
    }
  }
}
