package import Foundation
import Wire

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
