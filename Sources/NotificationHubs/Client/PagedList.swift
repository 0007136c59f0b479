import Foundation

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
