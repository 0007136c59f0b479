import Wire

/// A parsed value of a template that is evaluated for each device (docs/protocol/templates.md,
/// section 4).
struct TemplateExpression: Sendable {
  /// The form in which a property's value is used: the characters `$`, `.`, `%` and `#`.
  enum Form: Sendable {
    case plain
    case ellipsis
    case percentEncoded
    case number
  }

  struct Reference: Sendable {
    let form: Form
    /// Index into the template's ``NameTable``.
    let name: Int
    /// The text used when there is no such property.
    let fallback: [UInt8]?
    /// Maximum length of the result, in UTF-16 code units.
    let limit: Int?
  }

  enum Term: Sendable {
    case text([UInt8])
    case reference(Reference)
  }

  let terms: [Term]
  /// Whether it is `#(name)` alone and without braces, so that in a JSON body the result may be a
  /// number.
  let isNumber: Bool

  /// Whether it is the same for every message and every device.
  var isConstant: Bool {
    terms.allSatisfy { term in
      if case .text = term { true } else { false }
    }
  }

  /// Whether a value is an expression: its first character decides (docs/protocol/templates.md,
  /// section 3).
  static func isExpression(_ first: UInt8?) -> Bool {
    switch first {
    case UInt8(ascii: "$"), UInt8(ascii: "."), UInt8(ascii: "%"), UInt8(ascii: "#"),
      UInt8(ascii: "{"):
      true
    default: false
    }
  }
}

/// The property names that a template uses, in lower case, each once.
struct NameTable: Sendable {
  private(set) var names: [String] = []
  private var indexes: [String: Int] = [:]

  /// The index of a name, ignoring letter case; a new one is added.
  mutating func index(of name: String) -> Int {
    let folded = name.lowercased()
    if let index = indexes[folded] { return index }
    names.append(folded)
    indexes[folded] = names.count - 1
    return names.count - 1
  }
}

/// The values for the expressions of a template.
struct TemplateValues {
  let names: [String]
  let properties: TemplateProperties
  let pushVariables: [String: String]

  /// Looks in the message first, then in push variables; `nil` when neither has it
  /// (docs/protocol/templates.md, section 5).
  func value(_ name: Int) -> [UInt8]? {
    if let value = properties.values[names[name]] { return value }
    if pushVariables.isEmpty { return nil }
    if let value = pushVariables[names[name]] { return Array(value.utf8) }
    // The smallest spelling wins, so that the choice between `A` and `a` is always the same.
    let spelling = pushVariables.keys.filter { $0.lowercased() == names[name] }.min()
    return spelling.flatMap { pushVariables[$0] }.map { Array($0.utf8) }
  }
}

extension TemplateExpression {
  /// Appends the result, at most until `output` has reached `limit` bytes: no push service accepts
  /// more, and a short template can name a long property many times.
  func write(
    _ values: TemplateValues, escaping: Escaping, to output: inout [UInt8], limit: Int
  ) {
    for term in terms {
      guard output.count < limit else { return }
      switch term {
      case .text(let text): escaping.write(text[...], to: &output)
      case .reference(let reference):
        let value = values.value(reference.name) ?? reference.fallback ?? []
        Self.write(value, by: reference, escaping: escaping, to: &output)
      }
    }
  }

  /// The value of `#(name)` when it is the text of a number.
  func number(_ values: TemplateValues) -> [UInt8]? {
    guard isNumber, case .reference(let reference)? = terms.first else { return nil }
    let value = values.value(reference.name) ?? reference.fallback ?? []
    return Self.isNumber(value) ? value : nil
  }

  private static func write(
    _ value: [UInt8], by reference: Reference, escaping: Escaping, to output: inout [UInt8]
  ) {
    switch (reference.form, reference.limit) {
    case (.percentEncoded, _):
      var encoded: [UInt8] = []
      PercentEncoding.append(value, to: &encoded)
      escaping.write(encoded[...], to: &output)
    case (.ellipsis, let limit?):
      let whole = prefix(of: value, units: limit)
      if whole.count == value.count {
        escaping.write(whole, to: &output)
      } else {
        escaping.write(prefix(of: value, units: max(0, limit - 3)), to: &output)
        escaping.write(
          [UInt8](repeating: UInt8(ascii: "."), count: min(3, limit))[...], to: &output)
      }
    case (_, let limit?): escaping.write(prefix(of: value, units: limit), to: &output)
    case (_, nil): escaping.write(value[...], to: &output)
    }
  }

  /// The longest prefix of a UTF-8 text that has at most so many UTF-16 code units.
  private static func prefix(of text: [UInt8], units: Int) -> ArraySlice<UInt8> {
    if text.count <= units { return text[...] }
    var left = units
    var index = 0
    while index < text.count {
      let (bytes, cost) =
        switch text[index] {
        case 0xF0...: (4, 2)
        case 0xE0...: (3, 1)
        case 0xC0...: (2, 1)
        default: (1, 1)
        }
      if cost > left { break }
      left -= cost
      index += bytes
    }
    return text[..<min(index, text.count)]
  }

  /// `(0|([1-9][0-9]*))(\.[0-9]+)?((e|E)(\+|-)?[0-9]+)?` (docs/protocol/templates.md, section 5).
  static func isNumber(_ text: [UInt8]) -> Bool {
    var rest = text[...]
    func digits() -> Int {
      let count = rest.prefix(while: \.isDigit).count
      rest = rest.dropFirst(count)
      return count
    }
    let startsWithZero = rest.first == UInt8(ascii: "0")
    let whole = digits()
    guard whole == 1 || (whole > 1 && !startsWithZero) else { return false }
    if rest.first == UInt8(ascii: ".") {
      rest = rest.dropFirst()
      guard digits() > 0 else { return false }
    }
    if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
      rest = rest.dropFirst()
      if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") {
        rest = rest.dropFirst()
      }
      guard digits() > 0 else { return false }
    }
    return rest.isEmpty
  }
}
