/// The position and the description of a syntax error in a text.
package struct SyntaxFault: Error, Hashable, Sendable {
  /// In bytes from the start of the text.
  package let position: Int
  package let message: String

  package init(_ message: String, at position: Int) {
    self.message = message
    self.position = position
  }
}
