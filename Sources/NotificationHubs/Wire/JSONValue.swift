/// A JSON document as it was written: members keep their order and their spelling, numbers their
/// digits.
///
/// It exists beside Foundation's decoder because the protocol asks for what that cannot do: names
/// in any letter case, single quotes and unquoted names, members written in a fixed order, and
/// errors that name the member (spec `rest-api.md` 4.1).
package enum JSONValue: Hashable, Sendable {
  case null
  case bool(Bool)
  /// The digits as they stood.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])

  /// One member of an object.
  package struct Member: Hashable, Sendable {
    package let name: String
    package let value: JSONValue
    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  /// The value as text if it is a scalar: strings as they are, numbers and booleans as written.
  package var scalarText: String? {
    switch self {
    case .string(let text), .number(let text): text
    case .bool(let flag): flag ? "true" : "false"
    case .null, .array, .object: nil
    }
  }

  /// The member of that name, letter case aside; the last one when there are several. A member
  /// that is `null` counts as absent.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    let folded = name.lowercased()
    guard let found = members.last(where: { $0.name.lowercased() == folded }) else { return nil }
    return found.value == .null ? nil : found.value
  }
}
