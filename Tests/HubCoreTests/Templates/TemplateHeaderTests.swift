import HubCore
import NotificationHubs
import Testing

/// docs/protocol/templates.md, section 7.
@Suite("A template's headers and expiry")
struct TemplateHeaderTests {
  @Test("are evaluated, lower-cased, cleaned of line ends, and left out when empty")
  func headersAreEvaluated() throws {
    let template = try CompiledTemplate(
      PushTemplate(
        body: "{}",
        headers: [
          "Apns-Collapse-Id": "{'c-' + $(name)}", "apns-topic": "com.example",
          "x-gone": "$(nobody)", "Content-Type": "application/json", "x-lines": "$(lines)",
          "x-literal": "a\r\nb: c",
        ]))
    let body = template.render(TemplateProperties(["name": "Ann", "lines": "a\r\nx-evil: b"]))
    #expect(
      body.headers == [
        "apns-collapse-id": "c-Ann", "apns-topic": "com.example", "x-lines": "ax-evil: b",
        "x-literal": "ab: c",
      ])
  }

  @Test(
    "give an expiry when it is a date",
    arguments: [
      ("0", Int64(0)), ("2030-01-05T10:00:00Z", 1_893_837_600),
      ("2018-11-07T16:18:32.6641371-08:00", 1_541_636_312),
      ("2030-01-05T10:00:00", 1_893_837_600), ("2030-01-05", 1_893_801_600),
      ("2030-10-01T10:00+0000", 1_917_079_200), ("2030-01-05 12:00:00 +02", nil),
      ("2030-01-05 12:00:00+02:00", 1_893_837_600),
      ("01/05/2030 10:00:00", 1_893_837_600), (" 2030-01-05 ", 1_893_801_600),
      ("9999-12-31T23:59:59Z", 253_402_300_799), ("2024-02-29", 1_709_164_800),
      ("2023-02-29", nil), ("2030-13-01", nil), ("tomorrow", nil), ("", nil), ("1893837600", nil),
      ("2030-01-05T25:00:00Z", nil), ("2030-01-05T10:00:00Zx", nil), ("$(when)", 1_893_837_600),
      ("$(word)", nil), ("$(nobody)", nil),
    ])
  func expiryIsADate(text: String, expected: Int64?) throws {
    let template = try CompiledTemplate(PushTemplate(body: "{}", expiry: text))
    let properties = TemplateProperties(["when": "2030-01-05T10:00:00Z", "word": "soon"])
    #expect(template.render(properties).expiry == expected)
  }
}

@Suite("The body of a template send")
struct TemplatePropertiesTests {
  @Test("is a flat object; numbers and booleans count as their text, null as absent")
  func scalarsAreText() throws {
    let json = #" {"a":"x\n","B":1.50,"c":true,"d":null,"e":false,"é":"y","f":-2e3} "#
    let properties = try TemplateProperties(json: Array(json.utf8))
    let template = try CompiledTemplate(
      PushTemplate(body: #"{"v":"{$(a)+'|'+$(b)+'|'+$(c)+'|'+$(d)+'|'+$(e)+'|'+$(f)}"}"#))
    let text = String(decoding: template.render(properties).bytes, as: UTF8.self)
    #expect(text == #"{"v":"x\n|1.50|true||false|-2e3"}"#)
  }

  @Test(
    "is refused when it is anything else",
    arguments: [
      "", "x", "[]", "1", #""a""#, #"{"a":{}}"#, #"{"a":[]}"#, #"{"a":1"#, #"{"a":1}x"#,
      #"{"a":1,}"#, "\u{FEFF}{}",
    ])
  func otherBodiesAreRefused(json: String) {
    #expect(
      throws: HubFailure(status: 400, message: "The supplied notification payload is invalid")
    ) { try TemplateProperties(json: Array(json.utf8)) }
  }
}
