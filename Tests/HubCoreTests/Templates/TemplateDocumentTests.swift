import HubCore
import NotificationHubs
import Testing

/// Rows 48 to 52 of docs/protocol/templates.md, section 8, and section 6.
@Suite("A whole template")
struct TemplateDocumentTests {
  static let documents: [(String, String)] = [
    (
      ##"{"aps":{"alert":"$(q)","badge":"#(badge)"}}"##,
      #"{"aps":{"alert":"He said \"hi\" & left","badge":40}}"#
    ),
    (
      #"{"message":{"notification":{"title":"{'To ' + $(name)}","body":"$(nobody)"}}}"#,
      #"{"message":{"notification":{"title":"To Ann","body":""}}}"#
    ),
    (
      #"<toast><visual><binding template="ToastText01"><text id="1">$(q)</text></binding></visual></toast>"#,
      #"<toast><visual><binding template="ToastText01"><text id="1">He said "hi" &amp; left</text></binding></visual></toast>"#
    ),
    (
      #"<tile><visual><binding template="X"><image id="1" src="{'/i?x=' + %(url)}" alt="$(q)"/></binding></visual></tile>"#,
      #"<tile><visual><binding template="X"><image id="1" src="/i?x=a%20b%26c%2F%C3%A9" alt="He said &quot;hi&quot; &amp; left"/></binding></visual></tile>"#
    ),
    (
      #"{"data":{"a":["$(name)","x"],"n":5,"ok":true,"$(name)":"k"}}"#,
      #"{"data":{"a":["Ann","x"],"n":5,"ok":true,"$(name)":"k"}}"#
    ),
    // Every other byte stays: blanks, escapes, letter case of literals, order, repeated members.
    (
      " {\t\"b\" : \"$(name)\" ,\r\n \"a\":\"\\u00e9\\/\", \"a\": null } ",
      " {\t\"b\" : \"Ann\" ,\r\n \"a\":\"\\u00e9\\/\", \"a\": null } "
    ),
    // An expression is read after the document's escapes are undone.
    (#"{"a":"\u0024(name)","b":"{\"x\\y \" + $(name)}"}"#, #"{"a":"Ann","b":"x\\y Ann"}"#),
    (#"<a b='{&quot;x&quot; + $(q)}'/>"#, #"<a b='xHe said &quot;hi&quot; &amp; left'/>"#),
    ("<a>&#36;(name)</a>", "<a>Ann</a>"),
    ("<a><![CDATA[{'<' + $(q)}]]></a>", #"<a>&lt;He said "hi" &amp; left</a>"#),
    // Text beside children, comments and instructions is no expression.
    ("<a>$(name)<b/></a>", "<a>$(name)<b/></a>"),
    ("<a><b/>$(name)</a>", "<a><b/>$(name)</a>"),
    ("<a><!-- $(name) -->$(name)</a>", "<a><!-- $(name) -->$(name)</a>"),
    (
      "<?xml version=\"1.0\" encoding=\"utf-16\"?>\n<!-- $ -->\n<a x = '$(name)' >\n</a >\n",
      "<?xml version=\"1.0\" encoding=\"utf-16\"?>\n<!-- $ -->\n<a x = 'Ann' >\n</a >\n"
    ),
    ("{}", "{}"),
  ]

  @Test("is filled in place and otherwise kept byte for byte", arguments: documents)
  func documentIsFilled(template: String, expected: String) throws {
    #expect(try Example.render(template) == expected)
  }

  @Test("stays well-formed whatever the message holds")
  func hostileValues() throws {
    let hostile = "\"\\\u{0}\u{1}\n\t\r</a>&]]>'é😀"
    let properties = TemplateProperties(["p": hostile])
    let json = try CompiledTemplate(PushTemplate(body: #"{"a":"$(p)"}"#)).render(properties).bytes
    #expect(
      String(decoding: json, as: UTF8.self)
        == #"{"a":"\"\\\u0000\u0001\n\t\r</a>&]]>'é😀"}"#)
    let xml = try CompiledTemplate(PushTemplate(body: #"<a b="$(p)">$(p)</a>"#))
      .render(properties).bytes
    #expect(
      String(decoding: xml, as: UTF8.self)
        == "<a b=\"&quot;\\\u{FFFD}\u{FFFD}&#10;&#9;&#13;&lt;/a&gt;&amp;]]&gt;&apos;é😀\">\"\\\u{FFFD}\u{FFFD}\n\t&#13;&lt;/a&gt;&amp;]]&gt;'é😀</a>"
    )
  }

  @Test("does not grow without bound when it names a long property many times")
  func outputIsBounded() throws {
    let properties = TemplateProperties(["p": String(repeating: "x", count: 60_000)])
    let uses = Array(repeating: "\"$(p)\"", count: 5_000).joined(separator: ",")
    let template = try CompiledTemplate(PushTemplate(body: "{\"a\":[\(uses)]}"))
    let size = template.render(properties).bytes.count
    #expect(size > CompiledTemplate.sizeLimit)
    #expect(size < 3 * CompiledTemplate.sizeLimit)
  }

  @Test("says when push variables can make a difference")
  func pushVariablesMatterOnlyForMissingProperties() throws {
    let template = try CompiledTemplate(PushTemplate(body: #"{"a":"$(name)","b":"$(CITY)"}"#))
    #expect(template.propertyNames == ["name", "city"])
    #expect(template.needsPushVariables(with: Example.properties))
    #expect(!template.needsPushVariables(with: TemplateProperties(["NAME": "", "City": "x"])))
  }

  @Test("finds push variables in any letter case")
  func pushVariableCase() throws {
    let template = try CompiledTemplate(PushTemplate(body: #"{"a":"$(city)"}"#))
    let body = template.render(TemplateProperties([:]), pushVariables: ["CITY": "Rome"])
    #expect(String(decoding: body.bytes, as: UTF8.self) == #"{"a":"Rome"}"#)
  }
}
