import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Writes Atom documents as the service does: one line, no declaration (spec `rest-api.md` 1.5).
enum AtomWriter {
  /// What stands round the payload of an entry.
  struct Entry {
    var address: String
    var title: String
    /// The number in the etag; `nil` for resources that have none.
    var etag: String?
    var published: Date?
    var updated: Date
    var author: String?
    /// The element inside `content`.
    var payload: String
  }

  /// - Parameter inFeed: Whether the Atom namespace is declared round it already.
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

  /// - Parameter next: The address of the next page; `nil` on the last one.
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

  /// The body of a request: an entry with nothing but its payload.
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
  /// Adds an element with text, or nothing when there is none.
  mutating func appendElement(_ name: String, _ value: String?) {
    guard let value else { return }
    self += "<\(name)>\(value.xmlEscaped)</\(name)>"
  }
}
