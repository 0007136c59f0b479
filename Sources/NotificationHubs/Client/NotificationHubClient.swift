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

/// A list that a hub hands out page by page; each page is asked for when the one before it is used
/// up. Nothing promises that a list that changes meanwhile is read whole.
///
/// ```swift
/// for try await registration in client.registrations(tag: "news") { … }
/// ```
public struct PagedList<Element: Sendable>: AsyncSequence, Sendable {
  typealias Page = (elements: [Element], continuation: String?)
  private let items: [URLQueryItem]
  private let load: @Sendable ([URLQueryItem]) async throws -> Page

  /// - Parameters:
  ///   - items: The query of the first page.
  ///   - load: Reads a page.
  init(
    items: [URLQueryItem], load: @escaping @Sendable ([URLQueryItem]) async throws -> Page
  ) {
    self.items = items
    self.load = load
  }

  /// Reads one element after the other.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let list: PagedList
    private var page: ArraySlice<Element> = []
    private var token: String?
    private var isLast = false

    fileprivate init(_ list: PagedList) { self.list = list }

    /// - Throws: ``NotificationHubError``, or `CancellationError`.
    public mutating func next() async throws -> Element? {
      while page.isEmpty {
        if isLast { return nil }
        var items = list.items
        if let token {
          items.append(URLQueryItem(name: WireName.continuationParameter, value: token))
        }
        let (elements, continuation) = try await list.load(items)
        page = elements[...]
        guard continuation == nil || continuation != token else {
          throw NotificationHubError(
            kind: .unexpectedReply, detail: "the list goes on with the page that it just had")
        }
        token = continuation
        isLast = continuation == nil || continuation?.isEmpty == true
      }
      return page.popFirst()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

  /// Every element.
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
