import NotificationHubs
import Wire

/// Parses a template and collects its faults.
struct TemplateCompiler {
  private(set) var literals: [UInt8] = []
  private(set) var parts: [CompiledTemplate.Part] = []
  private(set) var headers: [(name: String, value: CompiledTemplate.Value)] = []
  private(set) var expiry: CompiledTemplate.Value?
  private(set) var names = NameTable()
  private(set) var faults: [TemplateError] = []

  /// Enough for correcting a template; a broken file could otherwise produce thousands.
  private static let faultLimit = 16

  mutating func compile(_ template: PushTemplate) {
    compileBody(Array(template.body.utf8))
    for (name, text) in template.headers.sorted(by: { $0.key < $1.key }) {
      // Some clients send it with every template; it describes their request, not the push.
      if name.lowercased() == WireName.contentType.lowercased() { continue }
      if let value = value(text, .header(name)) {
        headers.append((name.lowercased(), value))
      }
    }
    if let text = template.expiry { expiry = value(text, .expiry) }
  }

  private mutating func compileBody(_ bytes: [UInt8]) {
    literals.reserveCapacity(bytes.count)
    do throws(SyntaxFault) {
      switch bytes.first(where: { !$0.isBlank }) {
      case UInt8(ascii: "{"): try compileJSON(bytes)
      case UInt8(ascii: "<"): try compileXML(bytes)
      default:
        throw SyntaxFault("the body is neither a JSON object nor an XML document", at: 0)
      }
    } catch {
      add(.body, error.position, error.message)
    }
  }

  private mutating func compileJSON(_ bytes: [UInt8]) throws(SyntaxFault) {
    try bytes.withUnsafeBufferPointer { buffer throws(SyntaxFault) in
      var scanner = JSONScanner(buffer)
      try compileJSON(&scanner, bytes)
    }
  }

  private mutating func compileJSON(
    _ scanner: inout JSONScanner, _ bytes: [UInt8]
  ) throws(SyntaxFault) {
    var copied = 0
    while true {
      switch try scanner.next() {
      case .string(let string):
        // A value that does not begin with one of these bytes is a literal, escaped or not.
        let range = string.range
        let first = bytes[range].first
        guard first == UInt8(ascii: "\\") || TemplateExpression.isExpression(first) else { break }
        let text = scanner.unescaped(string)
        guard let expression = expression(text, .body, at: range.lowerBound) else { break }
        let quotes = expression.isNumber ? 1 : 0
        append(bytes[copied..<range.lowerBound - quotes], expression, .json)
        copied = range.upperBound + quotes
      case .end:
        literals += bytes[copied...]
        return
      default: break
      }
    }
  }

  private mutating func compileXML(_ bytes: [UInt8]) throws(SyntaxFault) {
    var copied = 0
    for value in try XMLValues.expressions(in: bytes) {
      guard let expression = expression(value.text, .body, at: value.range.lowerBound) else {
        continue
      }
      append(
        bytes[copied..<value.range.lowerBound], expression,
        value.isAttribute ? .xmlAttribute : .xmlText)
      copied = value.range.upperBound
    }
    literals += bytes[copied...]
  }

  private mutating func append(
    _ literal: ArraySlice<UInt8>, _ expression: TemplateExpression, _ escaping: Escaping
  ) {
    literals += literal
    if expression.isConstant {
      // It uses no property, so its result is already known.
      let values = TemplateValues(names: [], properties: .init([:]), pushVariables: [:])
      expression.write(values, escaping: escaping, to: &literals, limit: .max)
    } else {
      parts.append(
        .init(literalEnd: literals.count, expression: expression, escaping: escaping))
    }
  }

  /// A header's value, or the expiry; `nil` when it has a fault.
  private mutating func value(
    _ text: String, _ place: TemplateError.Place
  ) -> CompiledTemplate.Value? {
    let bytes = Array(text.utf8)
    guard TemplateExpression.isExpression(bytes.first) else {
      var clean: [UInt8] = []
      Escaping.header.write(bytes[...], to: &clean)
      return .literal(String(decoding: clean, as: UTF8.self))
    }
    return expression(bytes, place, at: 0).map { .expression($0) }
  }

  /// - Returns: `nil` for a literal, and for a faulty expression, whose fault is recorded.
  private mutating func expression(
    _ text: [UInt8], _ place: TemplateError.Place, at position: Int
  ) -> TemplateExpression? {
    do throws(SyntaxFault) {
      return try ExpressionParser.parse(text, names: &names)
    } catch {
      let shown = String(decoding: text.prefix(60), as: UTF8.self) + (text.count > 60 ? "…" : "")
      add(
        place, position,
        "'\(shown)' is no valid expression: \(error.message) (character \(error.position + 1))")
      return nil
    }
  }

  private mutating func add(_ place: TemplateError.Place, _ position: Int, _ message: String) {
    guard faults.count < Self.faultLimit else { return }
    faults.append(TemplateError(place: place, position: position, message: message))
  }
}

/// The reason that a template cannot be registered (docs/protocol/templates.md, section 9).
package struct TemplateError: Error, Hashable, CustomStringConvertible {
  /// The faulty text of the template.
  package enum Place: Hashable, Sendable {
    case body
    case header(String)
    case expiry
  }

  package let place: Place
  /// The position of the fault, in bytes of UTF-8 from the start of that text.
  package let position: Int
  /// A description of the fault; quotes at most a short piece of the template.
  package let message: String

  package var description: String {
    switch place {
    case .body: "body, byte \(position): \(message)"
    case .header(let name): "header '\(name)', byte \(position): \(message)"
    case .expiry: "expiry, byte \(position): \(message)"
    }
  }
}
