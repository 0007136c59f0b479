import Foundation

/// A client of one hub, on Azure or on a server of your own.
///
/// ```swift
/// let client = NotificationHubClient(
///   connectionString: try ConnectionString(text), hub: "my-hub")
/// try await client.createOrReplace(installation)
/// let receipt = try await client.send(
///   .template(["message": "Hello!"]), to: "12345" && !"beta")
/// ```
/// Every call throws ``NotificationHubError``, or `CancellationError` if its task is cancelled.
/// Errors of a custom ``TokenProvider`` are passed through unchanged.
public struct NotificationHubClient: Sendable {
  /// The address of the hub's namespace.
  public var endpoint: ServiceEndpoint { connection.endpoint }
  /// The hub's name.
  public let hub: String
  let connection: ServiceConnection

  /// Creates a client that mints its own tokens with a key.
  public init(
    connectionString: ConnectionString, hub: String,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    self.init(
      endpoint: connectionString.endpoint, hub: hub,
      tokens: TokenProvider(connectionString: connectionString, hub: hub), transport: transport,
      retry: retry)
  }

  /// Creates a client that gets its tokens from elsewhere and holds no key.
  public init(
    endpoint: ServiceEndpoint, hub: String, tokens: TokenProvider,
    transport: any HTTPTransport = URLSessionTransport.shared, retry: RetryPolicy = .standard
  ) {
    self.hub = hub
    connection = ServiceConnection(
      endpoint: endpoint, tokens: tokens, transport: transport, retry: retry)
  }

  /// Sends a request below the hub, retrying until it succeeds or a further retry is pointless.
  func perform(
    _ operation: HubOperation, _ id: String? = nil, query: [URLQueryItem] = [],
    headers: [String: String] = [:], body: Data? = nil
  ) async throws -> TransportReply {
    try await connection.perform(
      operation, hub: hub, id, query: query, headers: headers, body: body)
  }
}

/// A list that a hub returns page by page; each page is requested once the previous one is used up.
/// A list that changes in the meantime may be read incompletely.
///
/// ```swift
/// for try await registration in client.registrations(tag: "news") { … }
/// ```
public struct PagedList<Element: Sendable>: AsyncSequence, Sendable {
  package typealias Page = (elements: [Element], continuation: String?)
  private let items: [URLQueryItem]
  private let load: @Sendable ([URLQueryItem]) async throws -> Page

  /// - Parameters:
  ///   - items: The query of the first page.
  ///   - load: Loads one page.
  init(
    items: [URLQueryItem], load: @escaping @Sendable ([URLQueryItem]) async throws -> Page
  ) {
    self.items = items
    self.load = load
  }

  /// Loads one page.
  /// - Parameter token: The continuation of the page before it; `nil` for the first page.
  package func page(after token: String?) async throws -> Page {
    var items = items
    if let token {
      items.append(URLQueryItem(name: WireName.continuationParameter, value: token))
    }
    let (elements, continuation) = try await load(items)
    return (elements, continuation?.isEmpty == true ? nil : continuation)
  }

  /// Reads the elements one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let list: PagedList
    private var page: ArraySlice<Element> = []
    private var token: String?
    private var isLast = false

    fileprivate init(_ list: PagedList) { self.list = list }

    /// Returns the next element, or `nil` at the end of the list.
    /// - Throws: ``NotificationHubError``, or `CancellationError`.
    public mutating func next() async throws -> Element? {
      while page.isEmpty {
        if isLast { return nil }
        let (elements, continuation) = try await list.page(after: token)
        page = elements[...]
        guard continuation == nil || continuation != token else {
          throw NotificationHubError(
            kind: .unexpectedReply, detail: "the list goes on with the page that it just had")
        }
        token = continuation
        isLast = continuation == nil
      }
      return page.popFirst()
    }
  }

  /// Creates an iterator that starts with the first page.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

  /// Loads all pages and returns every element.
  public func all() async throws -> [Element] {
    var elements: [Element] = []
    for try await element in self { elements.append(element) }
    return elements
  }
}

extension [URLQueryItem] {
  /// The parameters that have a value.
  static func given(_ values: [(name: String, value: String?)]) -> [URLQueryItem] {
    values.compactMap { name, value in value.map { URLQueryItem(name: name, value: $0) } }
  }
}
