public import NotificationHubs

/// Registers the device with the hub itself.
///
/// The holder of a hub token or key chooses the tags of its devices, also those of other users
/// (docs/backend.md, "Tokens for the hub itself"). Prefer ``BackendRegistrar``; a connection string
/// inside an app is for trials only, and with the Listen right alone.
public struct HubRegistrar: InstallationRegistrar {
  /// The hub's address.
  public let address: String
  private let client: NotificationHubClient

  /// Registers with short-lived tokens of the app's backend.
  public init(
    endpoint: ServiceEndpoint, hub: String, tokens: TokenProvider,
    transport: any HTTPTransport = URLSessionTransport.shared
  ) {
    client = NotificationHubClient(
      endpoint: endpoint, hub: hub, tokens: tokens, transport: transport, retry: .none)
    address = "\(endpoint.url)/\(hub)"
  }

  /// Registers with a key. For trials: the key can be extracted from the app.
  public init(
    connectionString: ConnectionString, hub: String,
    transport: any HTTPTransport = URLSessionTransport.shared
  ) {
    self.init(
      endpoint: connectionString.endpoint, hub: hub,
      tokens: TokenProvider(connectionString: connectionString, hub: hub), transport: transport)
  }

  public func save(_ installation: Installation) async throws(RegistrarError) {
    try await attempt { try await client.createOrReplace(installation) }
  }

  public func delete(installation id: String, of userID: String?) async throws(RegistrarError) {
    try await attempt {
      do { try await client.delete(installation: id) } catch let error as NotificationHubError
        where error.kind == .notFound || error.kind == .gone
      {}
    }
  }

  public func installation(_ id: String) async throws(RegistrarError) -> Installation? {
    try await attempt {
      do { return try await client.installation(id) } catch let error as NotificationHubError
        where error.kind == .notFound
      {
        return nil
      }
    }
  }

  /// Sends a request, once more with a fresh token if the hub refused the present one. (The client
  /// has discarded it by then.)
  private func attempt<Success>(
    _ request: () async throws -> Success
  ) async throws(RegistrarError) -> Success {
    do {
      do { return try await request() } catch let error as NotificationHubError
        where error.status == 401
      {
        return try await request()
      }
    } catch { throw RegistrarError(error) }
  }
}
