/// Values for documents that are built in code, member by member in the order of the literal.
extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByIntegerLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  package init(integerLiteral value: Int64) { self = .number(String(value)) }
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0, $1) })
  }

  /// The number, or `null` for none.
  package init(_ number: (some BinaryInteger)?) {
    self = number.map { .number(String($0)) } ?? .null
  }

  /// The number; `null` for infinity and NaN, which JSON cannot represent.
  package init(_ number: Double) { self = number.isFinite ? .number(String(number)) : .null }

  /// The string, or `null` for none.
  package init(_ text: String?) { self = text.map(JSONValue.string) ?? .null }

  /// An object of strings.
  package init(_ pairs: some Sequence<(name: String, value: String)>) {
    self = .object(pairs.map { Member($0.name, .string($0.value)) })
  }

  /// The members of one object, then those of the other.
  package static func + (left: JSONValue, right: JSONValue) -> JSONValue {
    .object((left.members ?? []) + (right.members ?? []))
  }
}
