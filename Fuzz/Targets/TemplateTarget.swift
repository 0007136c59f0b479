import Foundation
import HubCore
import Wire

@testable import NotificationHubs

extension FuzzTarget {
  /// Template, NUL, a header's value, NUL, the body of a template send.
  static let template = FuzzTarget(name: "template") { bytes in
    let parts = fields(bytes, 3)
    let template = PushTemplate(
      body: text(parts[0]), headers: ["apns-topic": text(parts[1])], expiry: text(parts[1]))
    let faults = CompiledTemplate.faults(in: template)
    guard let compiled = try? CompiledTemplate(template) else {
      return expect(!faults.isEmpty, "a template that does not compile has faults")
    }
    expect(faults.isEmpty, "a template that compiles has no faults")
    // The hub refuses the body of a send that is no UTF-8 before it reads it.
    guard String(validating: parts[2], as: UTF8.self) != nil,
      let properties = try? TemplateProperties(json: Array(parts[2]))
    else { return }
    let message = compiled.render(properties, pushVariables: ["name": "Ann \"<&>\" \u{1}"])
    for value in message.headers.values {
      expect(
        !value.utf8.contains { $0 == 0x0D || $0 == 0x0A || $0 == 0 }, "a header has one line")
    }
    // Beyond that it may be cut.
    guard message.bytes.count < CompiledTemplate.sizeLimit else { return }
    if template.body.utf8.first == UInt8(ascii: "{"), isObject(Array(template.body.utf8)) {
      expect(isObject(message.bytes), "a message of a JSON template is a JSON object")
    } else if template.body.utf8.first == UInt8(ascii: "<"),
      let written = XMLNode.parse(template.body.utf8)
    {
      guard let read = XMLNode.parse(message.bytes) else {
        return expect(false, "a message of an XML template is well-formed")
      }
      expect(hasSameShape(written, read), "values make no elements and no attributes")
    }
  }

  /// In the eyes of another reader than ours.
  private static func isObject(_ bytes: [UInt8]) -> Bool {
    (try? JSONSerialization.jsonObject(with: Data(bytes))) is [String: Any]
  }

  private static func hasSameShape(_ one: XMLNode, _ other: XMLNode) -> Bool {
    one.name == other.name && one.children.count == other.children.count
      && one.attributes.count == other.attributes.count
      && zip(one.children, other.children).allSatisfy { hasSameShape($0, $1) }
  }
}
