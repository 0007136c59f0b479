import HubCore
import NotificationHubs
import Testing

/// docs/protocol/templates.md, section 9.
@Suite("A template that cannot be used")
struct TemplateFaultTests {
  static let values: [(String, String)] = [
    ("$", "at least three characters"), ("#1", "at least three characters"),
    ("$5 off", "'(' is expected"), ("$name", "'(' is expected"), (".wav", "'(' is expected"),
    ("...", "'(' is expected"), ("%20", "'(' is expected"),
    ("$(name", "')' is missing"),
    ("$()", "name is missing"),
    ("$(first name)", "only letters"), ("$(a-b)", "only letters"), ("$(é)", "only letters"),
    ("$(\(String(repeating: "a", count: 121)))", "at most 120"),
    ("{$(name)", "'}' is missing"), ("{", "'}' is missing"),
    ("{}", "between the braces"), ("{  }", "between the braces"),
    ("{$(name) - $(lang)}", "only '+'"), ("{$(name) $(lang)}", "only '+'"),
    (#"{"a":1}"#, "only '+'"), ("$(name) x", "only '+'"),
    ("{$(name) + }", "missing after '+'"), ("$(name)+", "missing after '+'"),
    ("{'Hi + $(name)}", "not closed"), (#"{"Hi + $(name)}"#, "not closed"),
    ("{name}", "a token begins with"),
    ("%(url, 5)", "takes no length"), ("#(badge, 2)", "takes no length"),
    (".(title)", "needs a length"),
    ("$(title, -1)", "whole number"), ("$(title, x)", "whole number"),
    ("$(title,)", "whole number"),
    ("$(title, 1 2)", "whole number"),
    ("{#(badge) + 'x'}", "stand alone"), ("#(badge) + 'x'", "stand alone"),
    ("{'x' + #(badge)}", "stand alone"),
    ("$body", "not supported"), ("{'Hi' + $body}", "not supported"),
    ("$(nobody:{friend)", "not closed"), (#"$(nobody:{friend\"#, "not closed"),
    ("$(nobody:friend)", "'{' is expected"),
    ("{$(name) + ''}", "at least three characters"),
  ]

  @Test("names the fault of each value, in a body, a header and the expiry", arguments: values)
  func valueIsRefused(value: String, fault: String) throws {
    let json = PushTemplate(body: #"{"a":"\#(Example.jsonEscaped(value))"}"#)
    let xml = PushTemplate(body: #"<a b="\#(value.replacing("\"", with: "&quot;"))"/>"#)
    let header = PushTemplate(body: "{}", headers: ["X-Name": value])
    let expiry = PushTemplate(body: "{}", expiry: value)
    for (template, place, position) in [
      (json, TemplateError.Place.body, 6), (xml, .body, 6), (header, .header("X-Name"), 0),
      (expiry, .expiry, 0),
    ] {
      let faults = CompiledTemplate.faults(in: template)
      #expect(faults.map(\.place) == [place])
      #expect(faults.first?.position == position)
      #expect(faults.first?.message.contains(fault) == true, "\(faults)")
      #expect(throws: TemplateError.self) { try CompiledTemplate(template) }
    }
  }

  static let documents: [String] = [
    "", "  ", "hello", "[1]", "\"x\"", "1", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{'a':1}",
    "{a:1}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":+1}", "{\"a\":.5}", "{\"a\":tru}", "{\"a\":\"x}",
    "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"\n\"}", "{\"a\":1} x",
    "{\"a\":[1,]}", "{\"a\":[1}", "{\"a\":1]", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\":\"\\",
    "<", "<a", "<a>", "<a></b>", "<a/><b/>", "<a>&nbsp;</a>", "<a>&#0;</a>", "<a>&#xD800;</a>",
    "<a>&#99999999999;</a>", "<a>&</a>", "<a b=1/>", "<a b/>", "<a b='1' b='2'/>", "<a b='<'/>",
    "<a b='1'c='2'/>", "<a>x]]>y</a>", "<a><!-- </a>", "<a><![CDATA[ </a>", "<?xml", "</a>",
    "<a/>x", "<a>\u{1}</a>", "<1/>", "<a b='x>", "<binding $(property)></binding>", "<!-- only -->",
    "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "<![CDATA[x]]>",
    String(repeating: "{\"a\":", count: 200) + "1" + String(repeating: "}", count: 200),
    String(repeating: "<a>", count: 200) + String(repeating: "</a>", count: 200),
    String(repeating: "[", count: 100_000), "{\"a\":" + String(repeating: "[", count: 100_000),
    String(repeating: "<a>", count: 100_000),
  ]

  @Test("is refused when its document is not well-formed", arguments: documents)
  func documentIsRefused(body: String) {
    let faults = CompiledTemplate.faults(in: PushTemplate(body: body))
    #expect(faults.count == 1)
    #expect(faults.first?.place == .body)
  }

  @Test("lists its faults, but not thousands of them")
  func faultsAreListed() {
    let three = PushTemplate(
      body: #"{"a":"$x1","b":"$(ok)","c":"{}"}"#, headers: ["h": ".."], expiry: "$(y")
    #expect(CompiledTemplate.faults(in: three).count == 4)
    let many = Array(repeating: "\"$x1\"", count: 1_000).joined(separator: ",")
    #expect(CompiledTemplate.faults(in: PushTemplate(body: "{\"a\":[\(many)]}")).count == 16)
  }

  @Test("are found though a body that looks the same was read before")
  func lookalike() {
    let valid = PushTemplate(body: ##"{"aps":{"alert":"$(K)"}}"##)
    // The sign of the unit Kelvin is equal to the letter as a character, but no letter of a name.
    let faulty = PushTemplate(body: valid.body.replacing("K", with: "\u{212A}"))
    #expect(valid.body == faulty.body)
    for _ in 0..<2 {
      #expect(CompiledTemplate.faults(in: valid).isEmpty)
      #expect(!CompiledTemplate.faults(in: faulty).isEmpty)
    }
  }

  @Test("never brings the compiler down, whatever is cut off or changed")
  func mutilatedTemplates() throws {
    let seeds = [
      ##"{"aps":{"alert":"{'it''s ' + $(a:{b\\}},4) + .(c,9)}","n":["#(d)",-1.5e+3,null]}}"##,
      #"<?xml version="1.0"?><t a="$(x)"><!-- c --><b>&#x41;<![CDATA[$(y)]]></b><c d='%(z)'/></t>"#,
    ]
    var state: UInt64 = 42
    for seed in seeds {
      #expect(CompiledTemplate.faults(in: PushTemplate(body: seed)).isEmpty)
      let bytes = Array(seed.utf8)
      for length in 0..<bytes.count {
        let body = String(decoding: bytes[..<length], as: UTF8.self)
        #expect(!CompiledTemplate.faults(in: PushTemplate(body: body)).isEmpty)
      }
      for _ in 0..<20_000 {
        var changed = bytes
        for _ in 0..<2 {
          state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
          changed[Int(state >> 33) % changed.count] = UInt8(truncatingIfNeeded: state >> 24) & 0x7F
        }
        let text = String(decoding: changed, as: UTF8.self)
        let template = PushTemplate(body: text, headers: ["h": text], expiry: text)
        if let compiled = try? CompiledTemplate(template) {
          _ = compiled.render(Example.properties, pushVariables: Example.pushVariables)
        }
      }
    }
  }
}
