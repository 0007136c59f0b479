extension CompiledTemplate {
  /// A rendered body is cut near this length, in bytes: no push service takes a tenth of it, and a
  /// small template could name a large property thousands of times. Header values are cut at
  /// ``PassThroughHeaders/maxBytes``.
  package static let sizeLimit = 65_536

  /// Fills the template for one message and one device.
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

  /// The quotes around `#(name)` in JSON are not part of ``literals``: a number has none.
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
