package import NotificationHubs
import Synchronization
import Wire

/// A template that was parsed once, so that each message only copies the runs of text between its
/// expressions (docs/protocol/templates.md).
///
/// One is made for each ``StoredTemplate`` and can be cached by its id. A rendered body is the same
/// for every device of that template unless ``needsPushVariables(with:)`` returns true, so the
/// dispatcher renders once for a whole page.
package struct CompiledTemplate: Sendable {
  /// A run of literal text, followed by an expression.
  struct Part: Sendable {
    /// The end of the run in ``literals``; it starts at the end of the previous part's.
    let literalEnd: Int
    let expression: TemplateExpression
    let escaping: Escaping
  }

  /// The value of a header or the expiry.
  enum Value: Sendable {
    case literal(String)
    case expression(TemplateExpression)
  }

  let literals: [UInt8]
  let parts: [Part]
  /// In the order of their names, which are in lower case.
  let headers: [(name: String, value: Value)]
  let expiry: Value?
  /// The names of all properties used, in lower case.
  package let propertyNames: [String]

  /// - Throws: The first of ``faults(in:)``.
  package init(_ template: PushTemplate) throws(TemplateError) {
    var compiler = TemplateCompiler()
    compiler.compile(template)
    if let fault = compiler.faults.first { throw fault }
    literals = compiler.literals
    parts = compiler.parts
    headers = compiler.headers
    expiry = compiler.expiry
    propertyNames = compiler.names.names
  }

  /// All faults of a template, at most 16; empty when it can be used.
  package static func faults(in template: PushTemplate) -> [TemplateError] {
    let isOnlyBody = template.headers.isEmpty && template.expiry == nil
    if isOnlyBody, faultless.contains(template.body) { return [] }
    var compiler = TemplateCompiler()
    compiler.compile(template)
    if isOnlyBody, compiler.faults.isEmpty { faultless.add(template.body) }
    return compiler.faults
  }

  private static let faultless = FaultlessBodies()

  /// Whether push variables make a difference, because the template uses a property that the
  /// message does not have.
  package func needsPushVariables(with properties: TemplateProperties) -> Bool {
    propertyNames.contains { properties.values[$0] == nil }
  }
}

extension CompiledTemplate {
  /// A rendered body is truncated near this length, in bytes: no push service accepts a tenth of
  /// it, and a small template could name a large property thousands of times. Header values are
  /// truncated at ``PassThroughHeaders/maxBytes``.
  package static let sizeLimit = 65_536

  /// Renders the template for one message and one device.
  ///
  /// - Parameter pushVariables: Those of the registration; used for properties that the message
  ///   does not have.
  /// - Returns: The body, the template's own headers (empty ones left out), and its expiry when
  ///   that is a date.
  package func render(
    _ properties: TemplateProperties, pushVariables: [String: String] = [:]
  ) -> PushBody {
    let values = TemplateValues(
      names: propertyNames, properties: properties, pushVariables: pushVariables)
    var body = PushBody(bytes: bytes(values))
    for (name, value) in headers {
      let text = Self.text(value, values)
      if !text.isEmpty { body.headers[name] = text }
    }
    body.expiry = expiry.flatMap { ExpiryText.seconds(Self.text($0, values)) }
    return body
  }

  private func bytes(_ values: TemplateValues) -> [UInt8] {
    if parts.isEmpty { return literals }
    var output: [UInt8] = []
    output.reserveCapacity(literals.count + 64 * parts.count)
    var start = 0
    for part in parts {
      guard output.count < Self.sizeLimit else { return output }
      output.append(contentsOf: literals[start..<part.literalEnd])
      start = part.literalEnd
      if part.expression.isNumber, part.escaping == .json {
        Self.writeNumberOrString(part.expression, values, to: &output)
      } else {
        part.expression.write(
          values, escaping: part.escaping, to: &output, limit: Self.sizeLimit)
      }
    }
    output.append(contentsOf: literals[start...])
    return output
  }

  /// The quotes around `#(name)` in JSON are not part of ``literals``, because a number has none.
  private static func writeNumberOrString(
    _ expression: TemplateExpression, _ values: TemplateValues, to output: inout [UInt8]
  ) {
    if let number = expression.number(values) {
      output.append(contentsOf: number)
    } else {
      output.append(UInt8(ascii: "\""))
      expression.write(values, escaping: .json, to: &output, limit: sizeLimit)
      output.append(UInt8(ascii: "\""))
    }
  }

  private static func text(_ value: Value, _ values: TemplateValues) -> String {
    switch value {
    case .literal(let text): return text
    case .expression(let expression):
      var output: [UInt8] = []
      expression.write(values, escaping: .header, to: &output, limit: PassThroughHeaders.maxBytes)
      return String(decoding: output, as: UTF8.self)
    }
  }
}

/// A few bodies in which no faults were found: the devices of an app mostly register the same.
private final class FaultlessBodies: Sendable {
  private struct State {
    var bodies: [String] = []
    /// The place that the next one takes once there are ``limit``.
    var next = 0
  }

  private static let limit = 8
  /// The maximum size of a body, in bytes of UTF-8, that is kept.
  private static let maxBytes = 4096

  private let state = Mutex(State())

  /// Whether the same bytes are among them: equal strings may differ in how characters are composed.
  func contains(_ body: String) -> Bool {
    state.withLock { state in
      state.bodies.contains { $0.utf8.hasSameBytes(as: body.utf8) }
    }
  }

  func add(_ body: String) {
    guard body.utf8.count <= Self.maxBytes else { return }
    state.withLock { state in
      if state.bodies.count < Self.limit {
        state.bodies.append(body)
      } else {
        state.bodies[state.next] = body
        state.next = (state.next + 1) % Self.limit
      }
    }
  }
}
