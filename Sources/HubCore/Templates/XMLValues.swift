import Wire

/// The places of an XML document that can hold expressions: attribute values, and the whole text of
/// elements that have only text (docs/protocol/templates.md, section 3). An element with a comment
/// or an instruction in it counts as mixed.
enum XMLValues {
  struct Value {
    /// The bytes to replace: between an attribute's quotes, or between an element's tags.
    let range: Range<Int>
    let isAttribute: Bool
    /// The text as a parser of the document would return it.
    let text: [UInt8]
  }

  private struct Element {
    let contentStart: Int
    var isMixed = false
    var text: [UInt8] = []
  }

  /// The values of a document that begin like an expression, in order.
  static func expressions(in bytes: [UInt8]) throws(SyntaxFault) -> [Value] {
    try bytes.withUnsafeBufferPointer { bytes throws(SyntaxFault) in
      var scanner = XMLScanner(bytes)
      return try expressions(&scanner)
    }
  }

  private static func expressions(_ scanner: inout XMLScanner) throws(SyntaxFault) -> [Value] {
    var values: [Value] = []
    var open: [Element] = []
    func markMixed() {
      guard let last = open.indices.last else { return }
      open[last].isMixed = true
      open[last].text = []
    }
    func add(_ text: @autoclosure () -> [UInt8]) {
      guard let last = open.indices.last, !open[last].isMixed else { return }
      open[last].text += text()
    }
    while true {
      switch try scanner.next() {
      case .startTag, .comment, .instruction: markMixed()
      case .attribute(_, let range):
        let text = scanner.resolved(range, isAttribute: true)
        if TemplateExpression.isExpression(text.first) {
          values.append(Value(range: range, isAttribute: true, text: text))
        }
      case .tagEnd(isEmpty: true): break
      case .tagEnd: open.append(Element(contentStart: scanner.position))
      case .text(let range): add(scanner.resolved(range))
      case .characterData(let range): add(Array(scanner.bytes[range]))
      case .endTag(let start):
        let element = open.removeLast()
        if !element.isMixed, TemplateExpression.isExpression(element.text.first) {
          values.append(
            Value(range: element.contentStart..<start, isAttribute: false, text: element.text))
        }
      case .end: return values
      }
    }
  }
}
