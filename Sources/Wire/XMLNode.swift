/// An element of a small XML document, such as the bodies that client and server exchange. Prefixes
/// are dropped from the names of elements.
///
/// Parsed by hand: on Linux Foundation's parser traps on attributes that are not UTF-8, and network
/// input must never cause that.
package struct XMLNode: Sendable {
  package let name: String
  /// The namespace prefix; empty when there is none.
  package var prefix = ""
  /// By qualified name, declarations of namespaces included.
  package var attributes: [String: String] = [:]
  package var text = ""
  package var children: [XMLNode] = []

  /// The first child of that name.
  package subscript(name: String) -> XMLNode? { children.first { $0.name == name } }

  /// The attribute with that name, whatever its prefix; namespace declarations are excluded.
  package func attribute(_ name: String) -> String? {
    if let plain = attributes[name] { return plain }
    return attributes.first { $0.key.hasSuffix(":\(name)") && !$0.key.hasPrefix("xmlns:") }?.value
  }

  /// The namespace of the element, if the element itself declares it.
  package var ownNamespace: String? { attributes[prefix.isEmpty ? "xmlns" : "xmlns:\(prefix)"] }

  /// Whether the element is marked as having no value (`i:nil="true"`).
  package var isNil: Bool { attribute("nil").map { $0 == "true" || $0 == "1" } ?? false }

  /// The text of the first child with that name; `nil` when there is none, or it is marked as nil.
  package func value(_ name: String) -> String? {
    guard let child = self[name], !child.isNil else { return nil }
    return child.text
  }

  /// As ``value(_:)``, without surrounding blanks, and `nil` when nothing is left.
  package func word(_ name: String) -> String? {
    guard let word = value(name)?.trimmingBlanks, !word.isEmpty else { return nil }
    return word
  }

  /// Parses the root of a document in UTF-8; `nil` when it is not well-formed, declares a document
  /// type, or nests deeper than any document of the protocol.
  package static func parse(_ document: some Collection<UInt8>) -> XMLNode? {
    document.withBytes { bytes in
      var scanner = XMLScanner(bytes, depthLimit: 32)
      return try? read(&scanner)
    }
  }

  private static func read(_ scanner: inout XMLScanner) throws -> XMLNode? {
    guard String(checkingUTF8: scanner.bytes) != nil else { return nil }
    var open: [XMLNode] = []
    var root: XMLNode?
    func close(_ node: XMLNode) {
      if open.isEmpty { root = node } else { open[open.count - 1].children.append(node) }
    }
    while true {
      switch try scanner.next() {
      case .startTag(let name):
        let name = scanner.bytes[name]
        let colon = name.lastIndex(of: UInt8(ascii: ":"))
        let local = colon.map { name[($0 + 1)...] } ?? name
        var node = XMLNode(name: String(decoding: local, as: UTF8.self))
        if let colon { node.prefix = String(decoding: name[..<colon], as: UTF8.self) }
        open.append(node)
      case .attribute(let name, let value):
        let name = String(decoding: scanner.bytes[name], as: UTF8.self)
        open[open.count - 1].attributes[name] = String(
          decoding: scanner.resolved(value, isAttribute: true), as: UTF8.self)
      case .text(let range):
        open[open.count - 1].text += String(decoding: scanner.resolved(range), as: UTF8.self)
      case .characterData(let range):
        open[open.count - 1].text += String(decoding: scanner.bytes[range], as: UTF8.self)
      case .endTag, .tagEnd(isEmpty: true): close(open.removeLast())
      case .tagEnd, .comment, .instruction: break
      case .end: return root
      }
    }
  }
}
