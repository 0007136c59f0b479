package import Foundation
package import Wire

/// The body of an error reply (docs/protocol/rest.md, section 1.6).
package struct ErrorEnvelope: Hashable, Sendable {
  /// The HTTP status, repeated.
  package let code: Int
  /// The error message; empty for a missing registration.
  package let message: String
  /// The id of the request in the service's logs.
  package let trackingID: String?

  package init(code: Int, message: String, trackingID: String?) {
    self.code = code
    self.message = message
    self.trackingID = trackingID
  }

  /// The document: one line, no declaration, `Code` before `Detail`.
  ///
  /// - Parameters:
  ///   - node: The small number after the tracking id, which identifies the machine.
  ///   - at: The time of the reply.
  package func xml(node: Int = 0, at: Date) -> String {
    var text = "<Error><Code>"
    text.reserveCapacity(message.utf8.count + 160)
    text += String(code)
    text += "</Code><Detail>"
    text += message.xmlEscaped
    text += ".TrackingId:"
    if let trackingID { text += trackingID.xmlEscaped }
    text += "_G"
    text += String(node)
    text += ",TimeStamp:"
    text += WireDate.american(at)
    text += "</Detail></Error>"
    return text
  }

  /// Reads either form in which the service writes the document.
  /// - Returns: `nil` if the document is something else.
  package init?(xml: Data) {
    guard let root = XMLNode.parse(xml), root.name == "Error", let detail = root["Detail"]
    else { return nil }
    code = Int(root["Code"]?.text ?? "") ?? 0
    let text = detail.text
    // The later front end puts a blank before the word.
    guard let mark = text.range(of: "TrackingId:", options: .backwards) else {
      message = text
      trackingID = nil
      return
    }
    var head = text[..<mark.lowerBound].trimmingBlanks
    if head.last == "." { head.removeLast() }
    message = head
    let id = text[mark.upperBound...].prefix { $0.isHexDigit || $0 == "-" }
    trackingID = id.isEmpty ? nil : String(id)
  }
}

/// The error for a text of invalid format.
///
/// It is thrown when a document of the service cannot be read, or a value to be sent is invalid.
public struct WireFormatError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The fault, worded like a hub's 400 reply (docs/protocol/rest.md, section 1.6).
  public let message: String

  package init(_ message: String) { self.message = message }

  /// The same as ``message``.
  public var description: String { message }

  /// The error for a request body that cannot be decoded.
  package static func body(_ fault: String) -> WireFormatError {
    WireFormatError("The provided request body is invalid. Error: \(fault)")
  }

  /// The error for an installation that breaks rules, with one line for each fault.
  package static func installation(_ faults: [String]) -> WireFormatError {
    let lines = ["Installation validation failed with following error(s):"] + faults
    return WireFormatError(lines.joined(separator: "\r\n"))
  }
}

extension JSONValue {
  /// The maximum nesting depth of arrays and objects.
  package static let depthLimit = 64

  /// Parses a JSON document in UTF-8 as leniently as the service does: unquoted names,
  /// single-quoted strings and a byte order mark are accepted.
  ///
  /// - Throws: ``WireFormatError`` with the byte offset of the fault.
  package static func parse(_ text: some Collection<UInt8>) throws(WireFormatError) -> JSONValue {
    do throws(SyntaxFault) {
      return try read(text, dialect: .lenient, depthLimit: depthLimit)
    } catch {
      throw .malformed(error)
    }
  }
}

extension WireFormatError {
  /// The error for JSON that is not well-formed.
  static func malformed(_ fault: SyntaxFault) -> WireFormatError {
    .body("The JSON text is not well-formed: \(fault.message) at offset \(fault.position).")
  }
}
