import HubCore
import NotificationHubs
import Testing

/// Rows 1 to 47 of docs/protocol/templates.md, section 8.
@Suite("A value of a template")
struct TemplateValueTests {
  static let texts: [(Int, String, String)] = [
    (1, "plain text", "plain text"),
    (2, "Hello $(name)", "Hello $(name)"),
    (3, " $(name)", " $(name)"),
    (4, "$(name)", "Ann"),
    (5, "$(NAME)", "Ann"),
    (6, "$( name )", "Ann"),
    (7, "$(nobody)", ""),
    (8, "$(empty)", ""),
    (9, "$(title, 4)", "This"),
    (10, "$(title,100)", "This is the title line"),
    (11, "$(title,0)", ""),
    (12, ".(title, 20)", "This is the title..."),
    (13, ".(title, 22)", "This is the title line"),
    (14, ".(title,21)", "This is the title ..."),
    (15, ".(long,5)", "ab..."),
    (16, ".(long,3)", "..."),
    (17, ".(long,2)", ".."),
    (18, ".(empty,5)", ""),
    (19, "%(url)", "a%20b%26c%2F%C3%A9"),
    (20, "%(q)", "He%20said%20%22hi%22%20%26%20left"),
    (30, "{'Hi, ' + $(name)}", "Hi, Ann"),
    (31, #"{"Hi, " + $(name) + '!'}"#, "Hi, Ann!"),
    (32, "{$(name) + ' - ' + $(lang)}", "Ann - en"),
    (33, "{ $(name)+$(lang) }", "Annen"),
    (34, "$(name) + $(lang)", "Annen"),
    (35, "{$(name)}", "Ann"),
    (36, "{'literal only'}", "literal only"),
    (37, "{'it''s ' + $(name)}", "it's Ann"),
    (38, #"{"say ""x"" " + $(name)}"#, #"say "x" Ann"#),
    (39, "{'$(name)'}", "$(name)"),
    (40, "{'Price: $' + $(price)}", "Price: $1.50"),
    (41, "{.(title,10) + ' ' + %(url)}", "This is... a%20b%26c%2F%C3%A9"),
    (42, "$(nobody:{friend})", "friend"),
    (43, "$(name:{friend})", "Ann"),
    (44, "$(nobody:{friend}, 3)", "fri"),
    (45, #"$(nobody:{a\}b})"#, "a}b"),
    (46, "$(city)", "Oslo"),
    (47, "$(News_English)", "Hello"),
  ]

  @Test("becomes the same text in JSON, XML and a header", arguments: texts)
  func textIsFilled(row: Int, value: String, expected: String) throws {
    let json = Example.jsonEscaped(value)
    #expect(
      try Example.render(#"{"a":"\#(json)"}"#) == #"{"a":"\#(Example.jsonEscaped(expected))"}"#)

    let quoted = value.replacing("\"", with: "&quot;")
    let isLiteral = !"$.%#{".contains(value.first ?? " ")
    let quotedResult = expected.replacing("\"", with: "&quot;").replacing("'", with: "&apos;")
    #expect(
      try Example.render(#"<a b="\#(quoted)">\#(value)</a>"#)
        == #"<a b="\#(isLiteral ? quoted : quotedResult)">\#(expected)</a>"#)

    let template = try CompiledTemplate(PushTemplate(body: "{}", headers: ["X-Test": value]))
    let headers = template.render(Example.properties, pushVariables: Example.pushVariables).headers
    #expect(headers == (expected.isEmpty ? [:] : ["x-test": expected]))
  }

  static let numbers: [(Int, String, String)] = [
    (21, "#(badge)", "40"),
    (22, "#(price)", "1.50"),
    (23, "#(exp)", "2E+3"),
    (24, "#(neg)", #""-3""#),
    (25, "#(zip)", #""007""#),
    (26, "#(name)", #""Ann""#),
    (27, "#(nobody)", #""""#),
    (28, "{#(badge)}", #""40""#),
  ]

  @Test("is a JSON number only for a number sign alone and a number", arguments: numbers)
  func numbersLoseTheirQuotes(row: Int, value: String, expected: String) throws {
    #expect(try Example.render(#"{"a":"\#(value)","b":1}"#) == #"{"a":\#(expected),"b":1}"#)
    #expect(try Example.render(#"{"a":["\#(value)"]}"#) == #"{"a":[\#(expected)]}"#)
  }

  @Test("is text for a number sign in XML, row 29")
  func numberInXML() throws {
    #expect(try Example.render(##"<a b="#(badge)">#(badge)</a>"##) == #"<a b="40">40</a>"#)
  }

  @Test(
    "is clipped by UTF-16 code units and never splits a character",
    arguments: [
      ("$(e,1)", ""), ("$(e,2)", "😀"), ("$(e,3)", "😀é"), ("$(e,4)", "😀éx"),
      (".(e,4)", "😀éx"), (".(e,3)", "..."), (".(f,5)", "😀..."), (".(f,4)", "..."),
    ])
  func clippingKeepsCharactersWhole(value: String, expected: String) throws {
    let properties = TemplateProperties(["e": "😀éx", "f": "😀😀😀"])
    let template = try CompiledTemplate(PushTemplate(body: #"{"a":"\#(value)"}"#))
    let bytes = template.render(properties).bytes
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"a":"\#(expected)"}"#)
  }

  @Test("takes a length far beyond any integer for no limit")
  func enormousLength() throws {
    let length = String(repeating: "9", count: 60)
    #expect(try Example.render(#"{"a":"$(name,\#(length))"}"#) == #"{"a":"Ann"}"#)
  }
}
