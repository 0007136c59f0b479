import Wire

/// The values a template send brings: a flat JSON object of strings (docs/protocol/templates.md,
/// section 2).
package struct TemplateProperties: Sendable {
  /// UTF-8 text by name in lower case.
  let values: [String: [UInt8]]

  /// If names differ only in letter case, the last in their order wins.
  package init(_ values: [String: String]) {
    var folded: [String: [UInt8]] = [:]
    for (name, value) in values.sorted(by: { $0.key < $1.key }) {
      folded[name.lowercased()] = Array(value.utf8)
    }
    self.values = folded
  }

  /// Parses the body of a template send, UTF-8 without a byte order mark. Numbers and booleans
  /// count as their text, `null` as absent; of equal names the last wins (docs/protocol/rest.md,
  /// section 5.2).
  /// - Throws: 400 for anything else.
  package init(json body: [UInt8]) throws(HubFailure) {
    do {
      values = try Self.read(body)
    } catch {
      throw HubFailure(status: 400, message: "The supplied notification payload is invalid")
    }
  }

  private static func read(_ body: [UInt8]) throws(SyntaxFault) -> [String: [UInt8]] {
    try body.withUnsafeBufferPointer { bytes throws(SyntaxFault) in
      var scanner = JSONScanner(bytes)
      return try read(&scanner)
    }
  }

  private static func read(_ scanner: inout JSONScanner) throws(SyntaxFault) -> [String: [UInt8]] {
    guard try scanner.next() == .objectStart else {
      throw SyntaxFault("an object is expected", at: 0)
    }
    var values: [String: [UInt8]] = [:]
    var name = ""
    while true {
      switch try scanner.next() {
      case .key(let text):
        name = String(decoding: scanner.unescaped(text), as: UTF8.self).lowercased()
      case .string(let text): values[name] = scanner.unescaped(text)
      case .number(let digits): values[name] = Array(scanner.bytes[digits])
      case .bool(let flag): values[name] = Array((flag ? "true" : "false").utf8)
      case .null: values[name] = nil
      case .objectStart, .arrayStart, .arrayEnd:
        throw SyntaxFault("a nested value is not allowed", at: 0)
      case .objectEnd: break
      case .end: return values
      }
    }
  }
}
