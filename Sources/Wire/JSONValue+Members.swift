#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// Members of an object, `nil` or empty where they are absent or of another kind.
extension JSONValue {
  /// A text, or a number or flag as written.
  package func text(_ name: String) -> String? { self[name]?.scalarText }

  package func count(_ name: String) -> Int? { self[name]?.count }

  package func flag(_ name: String) -> Bool? {
    if case .bool(let flag)? = self[name] { flag } else { nil }
  }

  package func date(_ name: String) -> Date? { text(name).flatMap(WireDate.parse) }

  package func items(_ name: String) -> [JSONValue] { array(name) ?? [] }

  package func array(_ name: String) -> [JSONValue]? {
    if case .array(let items)? = self[name] { items } else { nil }
  }

  /// The members of an object that are whole numbers.
  package func counts(_ name: String) -> [String: Int] {
    guard case .object(let members)? = self[name] else { return [:] }
    return Dictionary(
      members.compactMap { member in member.value.count.map { (member.name, $0) } }
    ) { $1 }
  }

  /// A non-negative whole number.
  package var count: Int? {
    guard case .number(let digits) = self, let number = Int(digits), number >= 0 else {
      return nil
    }
    return number
  }
}
