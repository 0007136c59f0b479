/// A text that does not have the form it should have.
///
/// Reading a document of the service, or checking what is to be sent to it, throws this.
public struct WireFormatError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, in the words with which a hub answers 400 (spec `rest-api.md` 1.6).
  public let message: String

  package init(_ message: String) { self.message = message }

  public var description: String { message }

  /// A request body that cannot be read at all.
  package static func body(_ fault: String) -> WireFormatError {
    WireFormatError("The provided request body is invalid. Error: \(fault)")
  }

  /// An installation that reads well but breaks rules; one line for each.
  package static func installation(_ faults: [String]) -> WireFormatError {
    let lines = ["Installation validation failed with following error(s):"] + faults
    return WireFormatError(lines.joined(separator: "\r\n"))
  }
}
