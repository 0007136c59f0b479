import Wire

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Reads Atom documents: of clients in every form they send, of hubs as they answer
/// (spec `rest-api.md` 1.5).
enum AtomReader {
  /// The payload of an entry, or the document itself when it has no Atom round it.
  static func payload(_ document: some Collection<UInt8>) -> XMLNode? {
    XMLNode.parse(document).flatMap(payload)
  }

  /// The payload of an entry, or the element itself.
  static func payload(_ node: XMLNode) -> XMLNode? {
    guard node.name == "entry" else { return node }
    return node["content"]?.children.first
  }

  /// The entries of a feed; `nil` when the document is something else.
  static func entries(_ document: some Collection<UInt8>) -> [XMLNode]? {
    guard let root = XMLNode.parse(document), root.name == "feed" else { return nil }
    return root.children.filter { $0.name == "entry" }
  }

  /// The value of an element as a date; "never" is `nil`.
  static func date(_ text: String?) -> Date? {
    text.flatMap(WireDate.parse).flatMap { WireDate.isNever($0) ? nil : $0 }
  }
}
