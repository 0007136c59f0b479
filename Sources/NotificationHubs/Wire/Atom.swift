import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The absolute URL of a request, the base of the URLs in its reply, which repeat its query
/// (docs/protocol/rest.md, section 1.5).
package struct AtomAddress: Hashable, Sendable {
  /// Scheme, host and path, without a trailing slash.
  package let base: String
  /// The query as requested; `nil` if there was none.
  package let query: String?

  /// - Parameter url: An absolute URL, with the query as received.
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

  /// The URL of a resource below this one, with the same query.
  package func appending(_ segment: String) -> AtomAddress {
    AtomAddress(base: "\(base)/\(segment.percentEncoded)", query: query)
  }

  /// The URL of a sibling resource: the last segment is replaced.
  package func replacingLast(with segment: String) -> AtomAddress {
    let end = base.lastIndex(of: "/") ?? base.endIndex
    return AtomAddress(base: "\(base[..<end])/\(segment.percentEncoded)", query: query)
  }

  /// The URL of a resource directly below the host, with the same query.
  package func root(_ path: String) -> AtomAddress {
    let host = base.firstRange(of: "://").map { base[$0.upperBound...] } ?? Substring(base)
    let end = host.firstIndex(of: "/") ?? base.endIndex
    return AtomAddress(base: "\(base[..<end])/\(path)", query: query)
  }

  /// The URL of the next page, as recorded: the same query, `$` in names encoded, and the token
  /// encoded once more than in the header (docs/protocol/rest.md, section 3.9).
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

/// Reads Atom documents: those of clients in every form that they send, and those of hubs
/// (docs/protocol/rest.md, section 1.5).
enum AtomReader {
  /// The payload of an entry, or the document itself if it is not wrapped in Atom.
  static func payload(_ document: some Collection<UInt8>) -> XMLNode? {
    XMLNode.parse(document).flatMap(payload)
  }

  /// The payload of an entry, or the element itself.
  static func payload(_ node: XMLNode) -> XMLNode? {
    guard node.name == "entry" else { return node }
    return node["content"]?.children.first
  }

  /// The entries of a feed; `nil` if the document is not a feed.
  static func entries(_ document: some Collection<UInt8>) -> [XMLNode]? {
    guard let root = XMLNode.parse(document), root.name == "feed" else { return nil }
    return root.children.filter { $0.name == "entry" }
  }

  /// The value of an element as a date; `nil` for "never".
  static func date(_ text: String?) -> Date? {
    text.flatMap(WireDate.parse).flatMap { WireDate.isNever($0) ? nil : $0 }
  }
}

/// Writes Atom documents as the service does: one line, no declaration (docs/protocol/rest.md,
/// section 1.5).
enum AtomWriter {
  /// The envelope and payload of an entry.
  struct Entry {
    var address: String
    var title: String
    /// The number in the etag; `nil` for resources without one.
    var etag: String?
    var published: Date?
    var updated: Date
    var author: String?
    /// The element inside `content`.
    var payload: String
  }

  /// - Parameter inFeed: Whether an enclosing element already declares the Atom namespace.
  static func entry(_ entry: Entry, inFeed: Bool = false) -> String {
    var text = "<entry"
    if let etag = entry.etag { text += " a:etag=\"W/&quot;\(etag.xmlAttributeEscaped)&quot;\"" }
    if !inFeed { text += " xmlns=\"\(WireName.atomNamespace)\"" }
    if entry.etag != nil { text += " xmlns:a=\"\(WireName.metadataNamespace)\"" }
    text += "><id>\(entry.address.xmlEscaped)</id>"
    text += "<title type=\"text\">\(entry.title.xmlEscaped)</title>"
    if let published = entry.published {
      text += "<published>\(WireDate.seconds(published))</published>"
    }
    text += "<updated>\(WireDate.seconds(entry.updated))</updated>"
    if let author = entry.author { text += "<author><name>\(author.xmlEscaped)</name></author>" }
    text += "<link rel=\"self\" href=\"\(entry.address.xmlAttributeEscaped)\"/>"
    return text + "<content type=\"application/xml\">\(entry.payload)</content></entry>"
  }

  /// - Parameter next: The URL of the next page; `nil` on the last one.
  static func feed(
    title: String, address: AtomAddress, next: String? = nil, updated: Date, entries: [Entry]
  ) -> String {
    let id = address.text
    var text = "<feed xmlns=\"\(WireName.atomNamespace)\"><title type=\"text\">"
    text += "\(title.xmlEscaped)</title><id>\(id.xmlEscaped)</id>"
    text += "<updated>\(WireDate.seconds(updated))</updated>"
    text += "<link rel=\"self\" href=\"\(id.xmlAttributeEscaped)\"/>"
    if let next { text += "<link rel=\"next\" href=\"\(next.xmlAttributeEscaped)\"/>" }
    for entry in entries { text += self.entry(entry, inFeed: true) }
    return text + "</feed>"
  }

  /// The body of a request: an entry with only its payload.
  static func request(_ payload: String) -> String {
    "<entry xmlns=\"\(WireName.atomNamespace)\"><content type=\"application/xml\">\(payload)"
      + "</content></entry>"
  }

  /// The start tag of a payload element, with its two namespaces.
  static func open(_ name: String) -> String {
    "<\(name) xmlns=\"\(WireName.connectNamespace)\" xmlns:i=\""
      + "\(WireName.schemaInstanceNamespace)\">"
  }
}

extension String {
  /// Appends an element with text, or nothing if the value is `nil`.
  mutating func appendElement(_ name: String, _ value: String?) {
    guard let value else { return }
    self += "<\(name)>\(value.xmlEscaped)</\(name)>"
  }
}
