/// One value of a template that is filled for each device, taken apart (docs/protocol/templates.md,
/// section 4).
struct TemplateExpression: Sendable {
  /// How the value of a property is used: the characters `$`, `.`, `%` and `#`.
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
    /// The greatest length of the result, in UTF-16 code units.
    let limit: Int?
  }

  enum Term: Sendable {
    case text([UInt8])
    case reference(Reference)
  }

  let terms: [Term]
  /// It is `#(name)` alone and without braces: in a JSON body the result may be a number.
  let isNumber: Bool

  /// The same for every message and every device.
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

  /// The number of a name, letter case aside; a new one is added.
  mutating func index(of name: String) -> Int {
    let folded = name.lowercased()
    if let index = indexes[folded] { return index }
    names.append(folded)
    indexes[folded] = names.count - 1
    return names.count - 1
  }
}
