/// Why a template cannot be registered (docs/protocol/templates.md, section 9).
package struct TemplateError: Error, Hashable, CustomStringConvertible {
  /// Which text of the template is at fault.
  package enum Place: Hashable, Sendable {
    case body
    case header(String)
    case expiry
  }

  package let place: Place
  /// Where the fault lies, in bytes of UTF-8 from the start of that text.
  package let position: Int
  /// What is wrong; quotes at most a short piece of the template.
  package let message: String

  package init(place: Place, position: Int, message: String) {
    self.place = place
    self.position = position
    self.message = message
  }

  package var description: String {
    switch place {
    case .body: "body, byte \(position): \(message)"
    case .header(let name): "header '\(name)', byte \(position): \(message)"
    case .expiry: "expiry, byte \(position): \(message)"
    }
  }
}
