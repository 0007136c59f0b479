import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// An element of a small XML document, such as the replies that a client reads. Prefixes are
/// dropped, attributes too.
struct XMLNode {
  let name: String
  var text = ""
  var children: [XMLNode] = []

  /// The first child of that name.
  subscript(name: String) -> XMLNode? { children.first { $0.name == name } }

  /// The root of a document; `nil` when it is not well-formed, or nests deeper than any reply does.
  static func parse(_ document: Data) -> XMLNode? {
    let parser = XMLParser(data: document)
    let builder = XMLTreeBuilder()
    parser.delegate = builder
    guard parser.parse() else { return nil }
    return builder.root
  }
}

/// Lives within one call of ``XMLNode/parse(_:)``.
private final class XMLTreeBuilder: NSObject, XMLParserDelegate {
  private static let maximumDepth = 32
  private var open: [XMLNode] = []
  private(set) var root: XMLNode?

  func parser(
    _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
    qualifiedName: String?, attributes: [String: String]
  ) {
    guard open.count < Self.maximumDepth else { return parser.abortParsing() }
    let local = elementName.split(separator: ":").last.map(String.init) ?? elementName
    open.append(XMLNode(name: local))
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    guard !open.isEmpty else { return }
    open[open.count - 1].text += string
  }

  func parser(_ parser: XMLParser, foundCDATA data: Data) {
    guard !open.isEmpty else { return }
    open[open.count - 1].text += String(decoding: data, as: UTF8.self)
  }

  func parser(
    _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?,
    qualifiedName: String?
  ) {
    guard let element = open.popLast() else { return }
    if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
  }
}
