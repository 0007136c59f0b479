import Wire

/// The absolute URL of a request, from which the URLs in its reply are made: they repeat its query
/// (spec `rest-api.md` 1.5).
package struct AtomAddress: Hashable, Sendable {
  /// Scheme, host and path, without a slash at the end.
  package let base: String
  /// As it was asked; `nil` when there was none.
  package let query: String?

  /// - Parameter url: Absolute, the query as it arrived.
  package init(_ url: String) {
    let mark = url.firstIndex(of: "?")
    var base = url[..<(mark ?? url.endIndex)]
    while base.last == "/" { base.removeLast() }
    self.base = String(base)
    query = mark.map { String(url[url.index(after: $0)...]) }
  }

  private init(base: String, query: String?) {
    self.base = base
    self.query = query
  }

  /// The whole URL.
  package var text: String { query.map { "\(base)?\($0)" } ?? base }

  /// The address of something below this one, with the same query.
  package func appending(_ segment: String) -> AtomAddress {
    AtomAddress(base: "\(base)/\(segment.percentEncoded)", query: query)
  }

  /// The address of something beside this one: the last segment is replaced.
  package func replacingLast(with segment: String) -> AtomAddress {
    let end = base.lastIndex(of: "/") ?? base.endIndex
    return AtomAddress(base: "\(base[..<end])/\(segment.percentEncoded)", query: query)
  }

  /// The address of something directly below the host, with the same query.
  package func root(_ path: String) -> AtomAddress {
    let host = base.firstRange(of: "://").map { base[$0.upperBound...] } ?? Substring(base)
    let end = host.firstIndex(of: "/") ?? base.endIndex
    return AtomAddress(base: "\(base[..<end])/\(path)", query: query)
  }

  /// The address of the next page, as recorded: the same query, `$` in names encoded, the token
  /// encoded once more than in the header (spec 3.9).
  package func next(token: String) -> String {
    var items: [String] = []
    for item in (query ?? "").split(separator: "&") {
      let end = item.firstIndex(of: "=") ?? item.endIndex
      let name = String(item[..<end]).percentDecoded
      if name.lowercased() == WireName.continuationParameter { continue }
      items.append(name.percentEncoded + item[end...])
    }
    items.append("\(WireName.continuationParameter)=\(token.percentEncoded)")
    return "\(base)?" + items.joined(separator: "&")
  }
}
