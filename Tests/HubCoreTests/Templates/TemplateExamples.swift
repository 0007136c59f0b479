import HubCore
import NotificationHubs

/// The message and the device of the worked examples (docs/protocol/templates.md, section 8).
enum Example {
  static let properties = TemplateProperties([
    "title": "This is the title line", "name": "Ann", "empty": "", "badge": "40", "price": "1.50",
    "exp": "2E+3", "neg": "-3", "zip": "007", "q": #"He said "hi" & left"#, "url": "a b&c/é",
    "lang": "en", "News_English": "Hello", "long": "abcdef",
  ])
  static let pushVariables = ["city": "Oslo", "name": "Per"]

  /// Renders a body with the message above.
  static func render(_ body: String) throws -> String {
    let template = try CompiledTemplate(PushTemplate(body: body))
    return String(
      decoding: template.render(properties, pushVariables: pushVariables).bytes, as: UTF8.self)
  }

  /// A text as the inside of a JSON string.
  static func jsonEscaped(_ text: String) -> String {
    text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
  }
}
