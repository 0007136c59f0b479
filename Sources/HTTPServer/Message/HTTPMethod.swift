/// A request method, spelled as on the wire; methods are case-sensitive (RFC 9110, section 9.1).
package struct HTTPMethod: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral {
  package let rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }
  package init(stringLiteral value: String) { rawValue = value }

  package static let get: Self = "GET"
  package static let head: Self = "HEAD"
  package static let post: Self = "POST"
  package static let put: Self = "PUT"
  package static let patch: Self = "PATCH"
  package static let delete: Self = "DELETE"
  package static let options: Self = "OPTIONS"
}
