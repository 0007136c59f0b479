import Foundation

/// Manages the hubs of a namespace. Needs a key with the Manage right.
///
/// ```swift
/// let namespace = NamespaceClient(connectionString: try ConnectionString(text))
/// let hub = try await namespace.create(
///   HubDescription(name: "my-hub", credentials: [.apns: ["Token": p8, …]]))
/// ```
/// Calls throw the same errors as those of ``NotificationHubClient``.
public struct NamespaceClient: Sendable {
  /// The address of the namespace.
  public var endpoint: ServiceEndpoint { connection.endpoint }
  private let connection: ServiceConnection

  /// Creates a client that mints its own tokens with a key of the namespace.
  public init(
    connectionString: ConnectionString, transport: any HTTPTransport = URLSessionTransport.shared,
    retry: RetryPolicy = .standard
  ) {
    self.init(
      endpoint: connectionString.endpoint,
      tokens: TokenProvider(connectionString: connectionString, hub: ""), transport: transport,
      retry: retry)
  }

  /// Creates a client that gets its tokens from elsewhere and holds no key.
  public init(
    endpoint: ServiceEndpoint, tokens: TokenProvider,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    connection = ServiceConnection(
      endpoint: endpoint, tokens: tokens, transport: transport, retry: retry)
  }

  /// Creates a hub.
  ///
  /// - Returns: The hub with its authorization rules; if you give none, the hub creates two.
  /// - Throws: ``NotificationHubError`` of kind `conflict` if a hub with that name exists.
  public func create(_ hub: HubDescription) async throws -> HubDescription {
    try await put(hub, ifMatch: nil)
  }

  /// Replaces the description of a hub; authorization rules stay as they are if they are `nil`.
  public func update(_ hub: HubDescription) async throws -> HubDescription {
    try await put(hub, ifMatch: "*")
  }

  /// Reads the description of a hub.
  ///
  /// - Throws: ``NotificationHubError`` of kind `notFound` if there is no such hub.
  public func hub(_ name: String) async throws -> HubDescription {
    try description(try await connection.perform(.getHub, hub: name), name)
  }

  /// Deletes a hub with all its data.
  ///
  /// - Throws: ``NotificationHubError`` of kind `notFound` if there is no such hub.
  public func delete(hub name: String) async throws {
    _ = try await connection.perform(.deleteHub, hub: name)
  }

  /// Returns all hubs of the namespace.
  public func hubs() async throws -> [HubDescription] {
    let everything = [
      URLQueryItem(name: WireName.skip, value: "0"),
      URLQueryItem(name: WireName.top, value: String(Int32.max)),
    ]
    let reply = try await connection.perform(
      .listHubs, query: everything)
    return try reply.read { (body) throws(WireFormatError) in try HubListing.decode(body) }
  }

  /// Changes and sends in all hubs, deleted ones included, with their authors; newest first, loaded
  /// page by page. Belfry only.
  public func activity(_ query: ActivityQuery = ActivityQuery()) -> PagedList<HubActivity> {
    PagedList(items: query.items) { [connection] items in
      let reply = try await connection.perform(
        .listAllActivity, query: items)
      return try (
        reply.read { (body) throws(WireFormatError) in try ActivityList.decode(body) },
        reply.header(WireName.continuationToken)
      )
    }
  }

  private func put(_ hub: HubDescription, ifMatch: String?) async throws -> HubDescription {
    var headers = [WireName.contentType: WireName.atomEntry]
    headers[WireName.ifMatch] = ifMatch
    let reply = try await connection.perform(
      .putHub, hub: hub.name, headers: headers, body: Data(hub.requestXML.utf8))
    return try description(reply, hub.name)
  }

  private func description(
    _ reply: TransportReply, _ name: String
  ) throws -> HubDescription {
    let hub = try reply.read { (body) throws(WireFormatError) in
      try HubDescription.decode(body, name: name)
    }
    // For a hub that does not exist the service returns the list of the namespace.
    guard let hub else {
      throw NotificationHubError(
        kind: .notFound, status: reply.status, detail: "there is no hub '\(name)'",
        trackingID: reply.header(WireName.trackingID))
    }
    return hub
  }
}
