import Foundation

/// Talks to one hub, on Azure or of your own.
///
/// ```swift
/// let client = NotificationHubClient(
///   connectionString: try ConnectionString(text), hub: "my-hub")
/// try await client.createOrReplace(installation)
/// let receipt = try await client.send(
///   .template(["message": "Hello!"]), to: "12345" && !"beta")
/// ```
/// Every call throws ``NotificationHubError``, or `CancellationError` when its task is cancelled; a
/// failure to get a token is passed on as it is.
public struct NotificationHubClient: Sendable {
  public var endpoint: ServiceEndpoint { connection.endpoint }
  /// The hub's name.
  public let hub: String
  let connection: ServiceConnection

  /// A client that makes its own tokens from a key.
  public init(
    connectionString: ConnectionString, hub: String,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    self.init(
      endpoint: connectionString.endpoint, hub: hub,
      tokens: TokenProvider(connectionString: connectionString, hub: hub), transport: transport,
      retry: retry)
  }

  /// A client whose tokens come from elsewhere, so that it holds no key.
  public init(
    endpoint: ServiceEndpoint, hub: String, tokens: TokenProvider,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    self.hub = hub
    connection = ServiceConnection(
      endpoint: endpoint, tokens: tokens, transport: transport, retry: retry)
  }

  /// Sends one request below the hub until it succeeds or no further try is worth it.
  func perform(
    _ method: String, _ path: [String], query: [URLQueryItem] = [],
    headers: [String: String] = [:], body: Data? = nil
  ) async throws -> TransportReply {
    // A hub's own path may have slashes.
    try await connection.perform(
      method, hub.split(separator: "/").map(String.init) + path, query: query, headers: headers,
      body: body)
  }
}
