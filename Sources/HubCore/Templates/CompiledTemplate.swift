package import NotificationHubs

/// A template taken apart once, so that each message only copies the runs of text between its
/// expressions (docs/protocol/templates.md).
///
/// One is made for each ``StoredTemplate`` and can be kept by its id. A rendered body is the same
/// for every device of that template unless ``needsPushVariables(with:)`` says otherwise, so the
/// dispatcher renders once for a whole page.
package struct CompiledTemplate: Sendable {
  /// A run of literal text, and the expression behind it.
  struct Part: Sendable {
    /// Where the run ends in ``literals``; it starts where that of the part before ended.
    let literalEnd: Int
    let expression: TemplateExpression
    let escaping: Escaping
  }

  /// What a header or the expiry holds.
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

  /// Everything that is wrong with a template, at most 16 faults; empty when it can be used.
  package static func faults(in template: PushTemplate) -> [TemplateError] {
    var compiler = TemplateCompiler()
    compiler.compile(template)
    return compiler.faults
  }

  /// Whether push variables can make a difference: the template uses a property that the message
  /// does not have.
  package func needsPushVariables(with properties: TemplateProperties) -> Bool {
    propertyNames.contains { properties.values[$0] == nil }
  }
}
