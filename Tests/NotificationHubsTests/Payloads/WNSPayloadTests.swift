import Foundation
import NotificationHubs
import Testing

@Suite("WNS payloads")
struct WNSPayloadTests {
  private static let head = #"<?xml version="1.0" encoding="utf-8"?>"#

  private func xml(_ payload: WNSPayload) -> String {
    let text = String(decoding: payload.body, as: UTF8.self)
    return text.hasPrefix(Self.head) ? String(text.dropFirst(Self.head.count)) : ""
  }

  private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

  @Test("a toast of two lines")
  func plainToast() throws {
    let payload = try WNSPayload(toast: .init(lines: ["Tea", "ready"]))
    #expect(
      xml(payload)
        == #"<toast><visual><binding template="ToastGeneric"><text>Tea</text><text>ready</text>"#
        + "</binding></visual></toast>")
    #expect(payload.headers == ["X-WNS-Type": "wns/toast"])
    #expect(payload.contentType == "application/xml")
    #expect(payload.size == payload.body.count && payload.limit == 5000)
  }

  @Test("a toast with everything")
  func toast() throws {
    let payload = try WNSPayload(
      toast: .init(
        lines: ["Tea"], attribution: "Kitchen", launch: "pot=2&x=\"1\"", activation: .background,
        logo: .init(try url("ms-appx:///logo.png"), alternative: "logo"),
        hero: .init(try url("https://example.com/h.png?a=1&b=2")),
        images: [.init(try url("https://example.com/i.png"))], isLong: true, scenario: .reminder,
        audio: .sound("ms-winsoundevent:Notification.Mail", loops: true),
        inputs: [
          .init(id: "words", kind: .text(placeholder: "say")),
          .init(id: "cup", kind: .selection([.init(id: "s", title: "small")]), title: "Cup"),
        ],
        buttons: [.init("Pour", arguments: "pour", activation: .background, inputID: "words")]),
      delivery: .init(isCached: true, ttl: 60, tag: "tea1", group: "kitchen", priority: .veryLow))
    #expect(
      xml(payload)
        == #"<toast launch="pot=2&amp;x=&quot;1&quot;" activationType="background" duration="long" "#
        + #"scenario="reminder"><visual><binding template="ToastGeneric"><text>Tea</text>"#
        + #"<text placement="attribution">Kitchen</text>"#
        + #"<image placement="appLogoOverride" src="ms-appx:///logo.png" alt="logo"/>"#
        + #"<image placement="hero" src="https://example.com/h.png?a=1&amp;b=2"/>"#
        + #"<image src="https://example.com/i.png"/></binding></visual><actions>"#
        + #"<input id="words" type="text" placeHolderContent="say"/>"#
        + #"<input id="cup" type="selection" title="Cup"><selection id="s" content="small"/></input>"#
        + #"<action content="Pour" arguments="pour" activationType="background" "#
        + #"hint-inputId="words"/></actions>"#
        + #"<audio src="ms-winsoundevent:Notification.Mail" loop="true"/></toast>"#)
    #expect(
      payload.headers == [
        "X-WNS-Type": "wns/toast", "X-WNS-Cache-Policy": "cache", "X-WNS-TTL": "60",
        "X-WNS-Tag": "tea1", "X-WNS-Group": "kitchen", "X-WNS-PRIORITY": "4",
      ])
  }

  @Test(
    "no text ends its element", arguments: ["</text>", "a & b", "\u{1}\u{FFFE}", "\r\n\t\"'<>]]>"])
  func escaping(text: String) throws {
    let payload = try WNSPayload(toast: .init(lines: [text], launch: text))
    let seen = ReadTexts(payload.body)
    let known = String(
      text.unicodeScalars.map {
        "\u{1}\u{FFFE}".unicodeScalars.contains($0) ? "\u{FFFD}" : Character($0)
      })
    #expect(seen.texts == [known])
    #expect(seen.launch == known)
  }

  @Test("a tile has a binding for each size")
  func tile() throws {
    let payload = try WNSPayload(
      tile: .init(
        medium: .init(lines: ["1 < 2"]),
        wide: .init(
          lines: ["a", "b"], images: [.init(try url("ms-appdata:///local/i.png"))],
          background: .init(try url("https://example.com/b.png"))),
        branding: .nameAndLogo, displayName: "Tea"))
    #expect(
      xml(payload)
        == #"<tile><visual branding="nameAndLogo" displayName="Tea"><binding template="TileMedium">"#
        + #"<text hint-wrap="true">1 &lt; 2</text></binding><binding template="TileWide">"#
        + #"<image placement="background" src="https://example.com/b.png"/>"#
        + #"<text hint-wrap="true">a</text><text hint-wrap="true">b</text>"#
        + #"<image src="ms-appdata:///local/i.png"/></binding></visual></tile>"#)
    #expect(payload.headers == ["X-WNS-Type": "wns/tile"])
  }

  @Test("a badge is a number or a glyph")
  func badge() throws {
    #expect(xml(try WNSPayload(badge: .number(0))) == #"<badge value="0"/>"#)
    let glyph = try WNSPayload(badge: .glyph(.newMessage))
    #expect(xml(glyph) == #"<badge value="newMessage"/>"#)
    #expect(glyph.headers == ["X-WNS-Type": "wns/badge"])
  }

  @Test("raw bytes go as they are")
  func raw() throws {
    let payload = try WNSPayload(raw: Data([0, 255]), delivery: .init(isCached: false))
    #expect(payload.body == Data([0, 255]))
    #expect(payload.contentType == "application/octet-stream")
    #expect(payload.headers == ["X-WNS-Type": "wns/raw", "X-WNS-Cache-Policy": "no-cache"])
    #expect(PushNotification(payload).contentType == "application/octet-stream")
  }

  @Test("5000 bytes are taken, and not one more")
  func size() throws {
    #expect(try WNSPayload(raw: Data(count: 5000)).size == 5000)
    let error = #expect(throws: PayloadError.self) { try WNSPayload(raw: Data(count: 5001)) }
    #expect(error?.kind == .tooLarge)
    #expect(throws: PayloadError.self) {
      try WNSPayload(toast: .init(lines: [String(repeating: "&", count: 1000)]))
    }
  }

  @Test("what WNS or Windows would refuse cannot be made")
  func faults() throws {
    let script = try url("javascript:alert(1)")
    let one = WNSPayload.Toast(lines: ["a"])
    func toast(_ change: (inout WNSPayload.Toast) -> Void) -> WNSPayload.Toast {
      var next = one
      change(&next)
      return next
    }
    let cases: [(String, () throws -> WNSPayload)] = [
      ("body", { try WNSPayload(raw: Data()) }),
      ("text", { try WNSPayload(toast: .init(lines: [])) }),
      ("text", { try WNSPayload(toast: .init(lines: ["1", "2", "3", "4"])) }),
      ("image.src", { try WNSPayload(toast: toast { $0.logo = .init(script) }) }),
      ("audio.loop", { try WNSPayload(toast: toast { $0.audio = .sound("x", loops: true) }) }),
      (
        "actions",
        {
          try WNSPayload(
            toast: toast { $0.buttons = (0..<6).map { .init("\($0)", arguments: "") } })
        }
      ),
      (
        "input.id",
        {
          try WNSPayload(
            toast: toast {
              $0.inputs = [.init(id: "i", kind: .text()), .init(id: "i", kind: .text())]
            })
        }
      ),
      (
        "selection",
        { try WNSPayload(toast: toast { $0.inputs = [.init(id: "i", kind: .selection([]))] }) }
      ),
      (
        "action.hint-inputId",
        { try WNSPayload(toast: toast { $0.buttons = [.init("b", arguments: "", inputID: "no")] }) }
      ),
      ("visual", { try WNSPayload(tile: .init()) }),
      ("TileWide", { try WNSPayload(tile: .init(wide: .init())) }),
      ("badge.value", { try WNSPayload(badge: .number(-1)) }),
      ("X-WNS-TTL", { try WNSPayload(toast: one, delivery: .init(ttl: 0)) }),
      ("X-WNS-Tag", { try WNSPayload(toast: one, delivery: .init(tag: "with-hyphen")) }),
      ("X-WNS-Tag", { try WNSPayload(toast: one, delivery: .init(tag: "a2345678901234567")) }),
      ("X-WNS-Group", { try WNSPayload(toast: one, delivery: .init(group: "")) }),
      ("X-WNS-Group", { try WNSPayload(badge: .number(1), delivery: .init(group: "g")) }),
    ]
    for (member, make) in cases {
      let error = #expect(throws: PayloadError.self, "\(member)") { try make() }
      #expect(error?.member == member)
    }
  }
}

/// Takes a toast apart again with plain text search, independent of how it was put together.
private struct ReadTexts {
  var texts: [String] = []
  var launch: String?

  init(_ body: Data) {
    let text = String(decoding: body, as: UTF8.self)
    launch = text.components(separatedBy: "launch=\"").dropFirst().first
      .flatMap { $0.components(separatedBy: "\"").first }.map(Self.plain)
    texts = text.components(separatedBy: "<text>").dropFirst()
      .compactMap { $0.components(separatedBy: "</text>").first }.map(Self.plain)
  }

  private static func plain(_ escaped: String) -> String {
    [
      ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#xD;", "\r"), ("&#xA;", "\n"),
      ("&#x9;", "\t"), ("&amp;", "&"),
    ].reduce(escaped) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
  }
}
