package import Foundation
package import Wire

/// The body of an error reply (docs/protocol/rest.md, section 1.6).
package struct ErrorEnvelope: Hashable, Sendable {
  /// The HTTP status once more.
  package let code: Int
  /// What is wrong; empty for a missing registration.
  package let message: String
  /// What the service's own logs know the request by.
  package let trackingID: String?

  package init(code: Int, message: String, trackingID: String?) {
    self.code = code
    self.message = message
    self.trackingID = trackingID
  }

  /// The document: one line, no declaration, `Code` before `Detail`.
  ///
  /// - Parameters:
  ///   - node: The small number behind the tracking id, which tells the machine.
  ///   - at: The time of the reply.
  package func xml(node: Int = 0, at: Date) -> String {
    let suffix = ".TrackingId:\(trackingID ?? "")_G\(node),TimeStamp:\(WireDate.american(at))"
    return "<Error><Code>\(code)</Code><Detail>\(message.xmlEscaped)\(suffix.xmlEscaped)</Detail>"
      + "</Error>"
  }

  /// Reads either form in which the service writes it.
  /// - Returns: `nil` when the document is something else.
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
