#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An element of a small XML document, such as the bodies that client and server exchange. Prefixes
/// are dropped from the names of elements.
///
/// Read by hand: on Linux Foundation's parser traps on attributes that are not UTF-8, and what a
/// network brings must never do that.
struct XMLNode {
  let name: String
  /// The namespace prefix; empty when there is none.
  var prefix = ""
  /// By qualified name, declarations of namespaces included.
  var attributes: [String: String] = [:]
  var text = ""
  var children: [XMLNode] = []

  /// The first child of that name.
  subscript(name: String) -> XMLNode? { children.first { $0.name == name } }

  /// The attribute of that name, whatever its prefix; declarations of namespaces aside.
  func attribute(_ name: String) -> String? {
    if let plain = attributes[name] { return plain }
    return attributes.first { $0.key.hasSuffix(":\(name)") && !$0.key.hasPrefix("xmlns:") }?.value
  }

  /// The namespace of the element, as far as the element itself declares it.
  var ownNamespace: String? { attributes[prefix.isEmpty ? "xmlns" : "xmlns:\(prefix)"] }

  /// Whether the element says that it has no value (`i:nil="true"`).
  var isNil: Bool { attribute("nil").map { $0 == "true" || $0 == "1" } ?? false }

  /// The text of the first child of that name; `nil` when there is none, or it says so itself.
  func value(_ name: String) -> String? {
    guard let child = self[name], !child.isNil else { return nil }
    return child.text
  }

  /// As ``value(_:)``, without blanks round it, and `nil` when nothing is left.
  func word(_ name: String) -> String? {
    guard let text = value(name) else { return nil }
    let word = Tag.trimmingBlanks(text)
    return word.isEmpty ? nil : word
  }

  /// The root of a document in UTF-8; `nil` when it is not well-formed, declares a document type, or
  /// nests deeper than any document of the protocol does.
  static func parse(_ document: some Collection<UInt8>) -> XMLNode? {
    guard let text = String(data: Data(document), encoding: .utf8),
      // Only those bytes can be part of a character that XML does not know.
      !text.utf8.contains(where: { $0 < 0x20 && !XMLReader.isBlank($0) || $0 == 0xEF })
        || text.unicodeScalars.allSatisfy(XMLReader.isCharacter)
    else { return nil }
    var reader = XMLReader(text)
    return reader.root()
  }
}

/// One pass over a document, with a stack of the open elements.
private struct XMLReader {
  private static let maximumDepth = 32
  private let bytes: [UInt8]
  private var position = 0
  private var open: [(name: ArraySlice<UInt8>, node: XMLNode)] = []

  init(_ text: String) {
    bytes = Array(text.utf8)
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
  }

  mutating func root() -> XMLNode? {
    var root: XMLNode?
    while position < bytes.count {
      if bytes[position] != UInt8(ascii: "<") {
        guard let text = characters() else { return nil }
        if open.isEmpty {
          guard text.utf8.allSatisfy(Self.isBlank) else { return nil }
        } else {
          open[open.count - 1].node.text += text
        }
      } else if take("<!--") {
        guard run(to: "-->") != nil else { return nil }
      } else if take("<![CDATA[") {
        guard !open.isEmpty, let text = run(to: "]]>") else { return nil }
        open[open.count - 1].node.text += String(decoding: text, as: UTF8.self)
      } else if take("<?") {
        guard run(to: "?>") != nil else { return nil }
      } else if take("</") {
        let name = self.name()
        skipBlanks()
        guard take(">"), let last = open.popLast(), last.name == name else { return nil }
        if !close(last.node, root: &root) { return nil }
      } else if take("<") {
        guard let isEmpty = startTag() else { return nil }
        if isEmpty, let last = open.popLast(), !close(last.node, root: &root) { return nil }
      }
    }
    return open.isEmpty ? root : nil
  }

  /// - Returns: `false` for a second root.
  private mutating func close(_ node: XMLNode, root: inout XMLNode?) -> Bool {
    if !open.isEmpty {
      open[open.count - 1].node.children.append(node)
      return true
    }
    guard root == nil else { return false }
    root = node
    return true
  }

  /// Opens an element.
  /// - Returns: Whether it is closed at once; `nil` for a fault.
  private mutating func startTag() -> Bool? {
    let name = self.name()
    guard !name.isEmpty, open.count < Self.maximumDepth else { return nil }
    let colon = name.lastIndex(of: UInt8(ascii: ":"))
    let local = colon.map { name[($0 + 1)...] } ?? name
    var node = XMLNode(name: String(decoding: local, as: UTF8.self))
    if let colon { node.prefix = String(decoding: name[..<colon], as: UTF8.self) }
    while true {
      skipBlanks()
      let isEmpty = take("/>")
      if isEmpty || take(">") {
        open.append((name, node))
        return isEmpty
      }
      let attribute = self.name()
      guard !attribute.isEmpty else { return nil }
      skipBlanks()
      guard take("=") else { return nil }
      skipBlanks()
      let quote = take("\"") ? UInt8(ascii: "\"") : UInt8(ascii: "'")
      if quote == UInt8(ascii: "'"), !take("'") { return nil }
      guard let value = characters(to: quote), position < bytes.count else { return nil }
      position += 1
      node.attributes[String(decoding: attribute, as: UTF8.self)] = value
    }
  }

  /// Character data up to the next mark, references resolved; the mark is not taken.
  private mutating func characters(to mark: UInt8 = UInt8(ascii: "<")) -> String? {
    var out: [UInt8] = []
    while position < bytes.count, bytes[position] != mark {
      if take("&") {
        guard let reference = run(to: ";", within: 12),
          let text = Self.resolve(String(decoding: reference, as: UTF8.self))
        else { return nil }
        out.append(contentsOf: text.utf8)
      } else {
        out.append(bytes[position])
        position += 1
      }
    }
    return String(decoding: out, as: UTF8.self)
  }

  private static func resolve(_ reference: String) -> String? {
    switch reference {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let number =
        if reference.hasPrefix("#x") {
          UInt32(reference.dropFirst(2), radix: 16)
        } else if reference.hasPrefix("#") {
          UInt32(reference.dropFirst())
        } else {
          UInt32?.none
        }
      guard let scalar = number.flatMap(UnicodeScalar.init), isCharacter(scalar) else {
        return nil
      }
      return String(Character(scalar))
    }
  }

  /// Whether XML 1.0 knows the character.
  static func isCharacter(_ scalar: UnicodeScalar) -> Bool {
    switch scalar {
    case "\t", "\n", "\r": true
    case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": false
    default: true
    }
  }

  /// Whatever stands before a blank or one of `/ > = <`.
  private mutating func name() -> ArraySlice<UInt8> {
    let start = position
    while position < bytes.count, !Self.isBlank(bytes[position]),
      !"/>=<".utf8.contains(bytes[position])
    {
      position += 1
    }
    return bytes[start..<position]
  }

  static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  private mutating func skipBlanks() {
    while position < bytes.count, Self.isBlank(bytes[position]) { position += 1 }
  }

  private mutating func take(_ mark: String) -> Bool {
    guard bytes[position...].starts(with: mark.utf8) else { return false }
    position += mark.utf8.count
    return true
  }

  /// What stands before the next mark, at most `limit` bytes; the mark is taken too.
  private mutating func run(to mark: String, within limit: Int = .max) -> ArraySlice<UInt8>? {
    let start = position
    while position < bytes.count, position - start <= limit {
      let end = position
      if take(mark) { return bytes[start..<end] }
      position += 1
    }
    return nil
  }
}
