#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An element of a small XML document, such as the replies that a client reads. Prefixes are
/// dropped, attributes too.
///
/// Read by hand: on Linux Foundation's parser traps on attributes that are not UTF-8, and what a
/// network brings must never do that.
struct XMLNode {
  let name: String
  var text = ""
  var children: [XMLNode] = []

  /// The first child of that name.
  subscript(name: String) -> XMLNode? { children.first { $0.name == name } }

  /// The root of a document in UTF-8; `nil` when it is not well-formed, declares a document type, or
  /// nests deeper than any reply does.
  static func parse(_ document: Data) -> XMLNode? {
    guard let text = String(data: document, encoding: .utf8) else { return nil }
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
    let local = name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name
    open.append((name, XMLNode(name: String(decoding: local, as: UTF8.self))))
    while true {
      skipBlanks()
      if take("/>") { return true }
      if take(">") { return false }
      guard !self.name().isEmpty else { return nil }
      skipBlanks()
      guard take("=") else { return nil }
      skipBlanks()
      if take("\"") {
        guard run(to: "\"") != nil else { return nil }
      } else {
        guard take("'"), run(to: "'") != nil else { return nil }
      }
    }
  }

  /// Character data up to the next tag, references resolved.
  private mutating func characters() -> String? {
    var out: [UInt8] = []
    while position < bytes.count, bytes[position] != UInt8(ascii: "<") {
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
      return number.flatMap(UnicodeScalar.init).map { String(Character($0)) }
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

  private static func isBlank(_ byte: UInt8) -> Bool {
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
