package import Wire

/// A text that does not have the form it should have.
///
/// Reading a document of the service, or checking what is to be sent to it, throws this.
public struct WireFormatError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, in the words with which a hub answers 400 (docs/protocol/rest.md, section 1.6).
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

extension JSONValue {
  /// How deep arrays and objects may nest.
  package static let depthLimit = 64

  /// Reads one JSON document in UTF-8 as the service does: names without quotes, texts in single
  /// quotes and a byte order mark are taken.
  ///
  /// - Throws: ``WireFormatError`` with the offset of the fault in bytes.
  package static func parse(_ text: some Collection<UInt8>) throws(WireFormatError) -> JSONValue {
    do throws(SyntaxFault) {
      return try read(text, dialect: .lenient, depthLimit: depthLimit)
    } catch {
      throw .body(
        "The JSON text is not well-formed: \(error.message) at offset \(error.position).")
    }
  }
}
