import Foundation

/// Manages the hubs of a namespace; needs a key with the right Manage.
///
/// ```swift
/// let namespace = NamespaceClient(connectionString: try ConnectionString(text))
/// let hub = try await namespace.create(
///   HubDescription(name: "my-hub", credentials: [.apns: ["Token": p8, …]]))
/// ```
/// Calls throw as those of ``NotificationHubClient`` do.
public struct NamespaceClient: Sendable {
  public var endpoint: ServiceEndpoint { connection.endpoint }
  private let connection: ServiceConnection

  /// A client that makes its own tokens from a key of the namespace.
  public init(
    connectionString: ConnectionString, transport: any HTTPTransport = URLSessionTransport.shared,
    retry: RetryPolicy = .standard
  ) {
    self.init(
      endpoint: connectionString.endpoint,
      tokens: TokenProvider(connectionString: connectionString, hub: ""), transport: transport,
      retry: retry)
  }

  /// A client whose tokens come from elsewhere, so that it holds no key.
  public init(
    endpoint: ServiceEndpoint, tokens: TokenProvider,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    connection = ServiceConnection(
      endpoint: endpoint, tokens: tokens, transport: transport, retry: retry)
  }

  /// Makes a hub.
  ///
  /// - Returns: The hub with its authorization rules; without any of your own it gets two.
  /// - Throws: ``NotificationHubError`` of the kind `conflict` when there is one of that name.
  public func create(_ hub: HubDescription) async throws -> HubDescription {
    try await put(hub, ifMatch: nil)
  }

  /// Replaces the description of a hub; authorization rules of `nil` stay as they are.
  public func update(_ hub: HubDescription) async throws -> HubDescription {
    try await put(hub, ifMatch: "*")
  }

  /// Reads the description of a hub.
  ///
  /// - Throws: ``NotificationHubError`` of the kind `notFound` when there is none.
  public func hub(_ name: String) async throws -> HubDescription {
    try description(try await connection.perform("GET", Self.path(name)), name)
  }

  /// Deletes a hub with all that it holds.
  ///
  /// - Throws: ``NotificationHubError`` of the kind `notFound` when there is none.
  public func delete(hub name: String) async throws {
    _ = try await connection.perform("DELETE", Self.path(name))
  }

  /// The hubs of the namespace.
  public func hubs() async throws -> [HubDescription] {
    let everything = [
      URLQueryItem(name: WireName.skip, value: "0"),
      URLQueryItem(name: WireName.top, value: String(Int32.max)),
    ]
    let reply = try await connection.perform(
      "GET", [WireName.resources, WireName.hubResources], query: everything)
    return try reply.read { (body) throws(WireFormatError) in try HubListing.decode(body) }
  }

  /// Who has changed or sent what, in all hubs and those that are gone, the newest first, read page
  /// by page. Belfry only.
  public func activity(_ query: ActivityQuery = ActivityQuery()) -> PagedList<HubActivity> {
    PagedList(items: query.items) { [connection] items in
      let reply = try await connection.perform(
        "GET", [ActivityList.namespaceSegment], query: items)
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
      "PUT", Self.path(hub.name), headers: headers, body: Data(hub.requestXML.utf8))
    return try description(reply, hub.name)
  }

  private func description(
    _ reply: TransportReply, _ name: String
  ) throws -> HubDescription {
    let hub = try reply.read { (body) throws(WireFormatError) in
      try HubDescription.decode(body, name: name)
    }
    // The service lists the namespace in the place of a hub that does not exist.
    guard let hub else {
      throw NotificationHubError(
        kind: .notFound, status: reply.status, detail: "there is no hub '\(name)'",
        trackingID: reply.header(WireName.trackingID))
    }
    return hub
  }

  /// A hub's own path may have slashes.
  private static func path(_ name: String) -> [String] {
    name.split(separator: "/").map(String.init)
  }
}
