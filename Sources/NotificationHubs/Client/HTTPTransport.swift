public import Foundation

/// Carries a client's requests; ``URLSessionTransport`` unless you bring your own, for a private
/// certificate authority or for tests.
public protocol HTTPTransport: Sendable {
  /// Sends the request and returns the reply, whatever its status.
  ///
  /// - Throws: When there is no reply; the client tries again. `CancellationError` when the task is
  ///   cancelled.
  func send(_ request: TransportRequest) async throws -> TransportReply
}

/// One HTTP request.
public struct TransportRequest: Hashable, Sendable {
  public var method: String
  public var url: URL
  public var headers: [String: String]
  public var body: Data?

  public init(method: String, url: URL, headers: [String: String] = [:], body: Data? = nil) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
  }
}

/// One HTTP reply.
public struct TransportReply: Hashable, Sendable {
  public var status: Int
  /// Names in lower case.
  public let headers: [String: String]
  public var body: Data

  /// - Parameter headers: Names in any letter case.
  public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
    self.status = status
    self.headers = Dictionary(
      headers.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first })
    self.body = body
  }

  /// The header of that name, letter case aside.
  public func header(_ name: String) -> String? { headers[name.lowercased()] }
}
