import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("Patches of installations")
struct InstallationPatchTests {
  static let before: Installation = {
    var installation = Installation(
      installationID: "i-1", userID: "bob", platform: .wns, pushChannel: .handle("https://a/"),
      pushChannelExpired: true, tags: ["red", "Blue"], pushVariables: ["k": "v", "l": "w"],
      templates: [
        "main": PushTemplate(
          body: "<toast/>", headers: ["X-WNS-Type": "wns/toast"], expiry: "0", tags: ["x", "main"])
      ],
      secondaryTiles: ["tile": SecondaryTile(pushChannel: "https://t/", tags: ["s"])])
    return installation
  }()

  static func apply(_ operations: String) throws -> Installation {
    try InstallationPatch.decode(operations.utf8).applied(to: before)
  }

  /// One operation, and the JSON (without the ever-same head) that it leaves; nil for a refusal.
  @Test(
    "every row of the path table",
    arguments: [
      (
        #"{"op":"replace","path":"/pushChannel","value":"https://b/"}"#,
        #""pushChannel":"https://b/","pushChannelExpired":false"#
      ),
      (
        #"{"op":"REPLACE","path":"/PUSHCHANNEL","value":"https://b/"}"#,
        #""pushChannel":"https://b/","pushChannelExpired":false"#
      ),
      (#"{"op":"remove","path":"/pushChannel"}"#, nil),
      (#"{"op":"add","path":"/userId","value":"ann"}"#, #""userId":"ann""#),
      (
        #"{"op":"remove","path":"/userId","value":null}"#, #""9999-12-31T23:59:59.9999999Z","tags""#
      ),
      (#"{"op":"add","path":"/tags","value":"green"}"#, #""tags":["red","Blue","green"]"#),
      (#"{"op":"add","path":"/tags","value":"BLUE"}"#, #""tags":["red","Blue"]"#),
      (#"{"op":"add","path":"/tags","value":["a","RED"]}"#, #""tags":["red","Blue","a"]"#),
      (#"{"op":"add","path":"/tags","value":"[\"a\",\"b\"]"}"#, #""tags":["red","Blue","a","b"]"#),
      (#"{"op":"replace","path":"/tags","value":["a"]}"#, #""tags":["a"]"#),
      (#"{"op":"replace","path":"/tags","value":"a"}"#, #""tags":["a"]"#),
      (#"{"op":"remove","path":"/tags"}"#, #""userId":"bob","pushVariables""#),
      (#"{"op":"add","path":"/tags/green"}"#, #""tags":["red","Blue","green"]"#),
      (#"{"op":"remove","path":"/tags/blue"}"#, #""tags":["red"]"#),
      (#"{"op":"remove","path":"/tags/none"}"#, #""tags":["red","Blue"]"#),
      (
        #"{"op":"replace","path":"/pushVariables","value":"{\"a\":\"b\"}"}"#,
        #""pushVariables":{"a":"b"}"#
      ),
      (
        #"{"op":"add","path":"/pushVariables/m","value":"x"}"#,
        #""pushVariables":{"k":"v","l":"w","m":"x"}"#
      ),
      (#"{"op":"remove","path":"/pushVariables/k"}"#, #""pushVariables":{"l":"w"}"#),
      (#"{"op":"remove","path":"/pushVariables"}"#, #""tags":["red","Blue"],"templates""#),
      (
        #"{"op":"add","path":"/templates/n","value":"{\"body\":\"<tile/>\"}"}"#,
        #","n":{"body":"<tile/>","tags":["n"]}}"#
      ),
      (
        #"{"op":"add","path":"/templates/n~1~0m","value":{"body":"<tile/>"}}"#,
        #","n/~m":{"body":"<tile/>","tags":["n/~m"]}}"#
      ),
      (#"{"op":"remove","path":"/templates/main"}"#, #""w"},"secondaryTiles""#),
      (
        #"{"op":"replace","path":"/templates/main/body","value":"<badge/>"}"#,
        #""body":"<badge/>","headers""#
      ),
      (#"{"op":"remove","path":"/templates/main/body"}"#, nil),
      (#"{"op":"add","path":"/templates/main/expiry","value":"1"}"#, #""expiry":"1""#),
      (#"{"op":"remove","path":"/templates/main/expiry"}"#, #""wns/toast"},"tags""#),
      (
        #"{"op":"replace","path":"/templates/main/headers","value":"{\"a\":\"b\"}"}"#,
        #""headers":{"a":"b"}"#
      ),
      (#"{"op":"remove","path":"/templates/main/headers"}"#, #""body":"<toast/>","expiry""#),
      (#"{"op":"add","path":"/templates/main/tags","value":"y"}"#, #""tags":["x","y","main"]"#),
      (#"{"op":"remove","path":"/templates/main/tags/x"}"#, #""expiry":"0","tags":["main"]"#),
      (#"{"op":"replace","path":"/templates/none/body","value":"x"}"#, nil),
      (
        #"{"op":"add","path":"/secondaryTiles/u","value":"{\"pushChannel\":\"https://u/\"}"}"#,
        #","u":{"pushChannel":"https://u/","pushChannelExpired":false}"#
      ),
      (
        #"{"op":"add","path":"/secondaryTiles/u","value":{"pushChannel":"https://u/","pushChannelExpired":true}}"#,
        #","u":{"pushChannel":"https://u/","pushChannelExpired":false}"#
      ),
      (
        #"{"op":"add","path":"/secondaryTiles","value":{"u":{"pushChannel":"https://u/","expiredPushChannel":true}}}"#,
        #","u":{"pushChannel":"https://u/","pushChannelExpired":false}"#
      ),
      (#"{"op":"remove","path":"/secondaryTiles/tile"}"#, #""tags":["x","main"]}}}"#),
      (
        #"{"op":"replace","path":"/secondaryTiles/tile/pushChannel","value":"https://v/"}"#,
        #""pushChannel":"https://v/""#
      ),
      (#"{"op":"add","path":"/secondaryTiles/tile/tags","value":"t"}"#, #""tags":["s","t"]"#),
      (
        #"{"op":"add","path":"/secondaryTiles/tile/templates/q","value":{"body":"<tile/>"}}"#,
        #""templates":{"q":{"body":"<tile/>","tags":["q"]}}}}}"#
      ),
      (#"{"op":"add","path":"/secondaryTiles/none/tags","value":"t"}"#, nil),
      (#"{"op":"add","path":"/secondaryTiles/tile","value":"{"}"#, nil),
      (#"{"op":"move","path":"/tags"}"#, nil), (#"{"path":"/tags"}"#, nil),
      (#"{"op":"add","value":"x"}"#, nil), (#"{"op":"add","path":"tags","value":"x"}"#, nil),
      (#"{"op":"add","path":"/","value":"x"}"#, nil),
      (#"{"op":"add","path":"/nothing","value":"x"}"#, nil),
      (#"{"op":"replace","path":"/platform","value":"apns"}"#, nil),
      (
        #"{"op":"replace","path":"/templates","value":{"n":{"body":"<badge/>"}}}"#,
        #""w"},"templates":{"n":{"body":"<badge/>","tags":["n"]}},"secondaryTiles""#
      ),
      (
        #"{"op":"replace","path":"/templates","value":"{\"n\":{\"body\":\"<badge/>\"},\"o\":null}"}"#,
        #""w"},"templates":{"n":{"body":"<badge/>","tags":["n"]}},"secondaryTiles""#
      ),
      (
        #"{"op":"add","path":"/Templates","value":{"n":{"body":"<badge/>"}}}"#,
        #""tags":["x","main"]},"n":{"body":"<badge/>","tags":["n"]}},"secondaryTiles""#
      ),
      (#"{"op":"replace","path":"/templates","value":"{}"}"#, #""w"},"secondaryTiles""#),
      (#"{"op":"remove","path":"/templates"}"#, #""w"},"secondaryTiles""#),
      (#"{"op":"replace","path":"/templates"}"#, nil),
      (#"{"op":"replace","path":"/templates","value":[]}"#, nil),
      (#"{"op":"replace","path":"/templates","value":{"n":{}}}"#, nil),
      (
        #"{"op":"replace","path":"/secondaryTiles","value":{"u":{"pushChannel":"https://u/"}}}"#,
        #""secondaryTiles":{"u":{"pushChannel":"https://u/","pushChannelExpired":false}}}"#
      ),
      (#"{"op":"remove","path":"/secondaryTiles"}"#, #""tags":["x","main"]}}}"#),
      (
        #"{"op":"replace","path":"/secondaryTiles/tile/templates","value":{"q":{"body":"<tile/>"}}}"#,
        #""templates":{"q":{"body":"<tile/>","tags":["q"]}}}}}"#
      ),
      (#"{"op":"add","path":"/tags/a/b"}"#, nil), (#"{"op":"add","path":"/tags"}"#, nil),
      (#"{"op":"add","path":"/tags","value":"a b"}"#, nil),
      (#"{"op":"add","path":"/tags","value":5}"#, nil),
      (#"{"op":"add","path":"/tags","value":"$UserId:{x}"}"#, nil),
      (#"{"op":"replace","path":"/userId","value":{}}"#, nil),
      (#"{"op":"replace","path":"/pushChannel","value":""}"#, nil), ("5", nil),
    ])
  func operations(operation: String, expected: String?) throws {
    guard let expected else {
      #expect(throws: WireFormatError.self) { try Self.apply("[\(operation)]") }
      return
    }
    let text = String(decoding: try Self.apply("[\(operation)]").hubJSON, as: UTF8.self)
    #expect(text.contains(expected), "\(text)")
  }

  @Test("operations apply in order, all or none")
  func order() throws {
    let both = #"[{"op":"remove","path":"/tags"},{"op":"add","path":"/tags","value":"a"}]"#
    #expect(try Self.apply(both).tags == ["a"])
    #expect(throws: WireFormatError.self) {
      try Self.apply(#"[{"op":"add","path":"/tags","value":"a"},{"op":"add","path":"/x"}]"#)
    }
    #expect(throws: WireFormatError.self) { try Self.apply("{}") }
    #expect(try Self.apply("[]") == (try Self.before.validated()))
  }

  @Test("a patch of the past 60th tag is refused")
  func tooManyTags() throws {
    let tags = (0..<59).map { "\"t\($0)\"" }.joined(separator: ",")
    #expect(throws: WireFormatError.self) {
      try Self.apply(#"[{"op":"add","path":"/tags","value":[\#(tags)]}]"#)
    }
    let flood = (0..<20_000).map { "\"t\($0)\"" }.joined(separator: ",")
    #expect(throws: WireFormatError.self) {
      try Self.apply(#"[{"op":"add","path":"/tags","value":[\#(flood)]}]"#)
    }
  }

  @Test(
    "a path is cut at every slash, whatever follows it",
    arguments: [
      ("/tags/\u{301}red", ["tags", "\u{301}red"]), ("/tags/\u{200D}", ["tags", "\u{200D}"]),
      ("/templates/a~1\u{301}b/body", ["templates", "a/\u{301}b", "body"]),
      ("/templates/~0\u{308}~", ["templates", "~\u{308}~"]),
      ("/templates/~01", ["templates", "~1"]), ("/tags/", ["tags", ""]),
      ("/\u{301}tags", ["\u{301}tags"]),
    ])
  func separators(path: String, segments: [String]) throws {
    var writer = JSONWriter()
    writer.beginArray()
    writer.beginObject()
    writer.member("op", "remove")
    writer.member("path", path)
    writer.endObject()
    writer.endArray()
    let operation = try #require(try InstallationPatch.decode(writer.bytes).operations.first)
    #expect(
      operation.path.map { Array($0.unicodeScalars) } == segments.map { Array($0.unicodeScalars) })
    let again = try InstallationPatch(jsonData: InstallationPatch([operation]).jsonData)
    #expect(again.operations.first?.path.map { Array($0.utf8) } == segments.map { Array($0.utf8) })
  }

  @Test("what the builder makes reads back and applies")
  func builder() throws {
    let patch: InstallationPatch = [
      .addTag("green"), .removeTag("red"), .setUserID("ann"), .setPushVariables(["a": "b/~"]),
      .setPushChannel(.handle("https://n/")), .setTemplate("a/b~1", PushTemplate(body: "<tile/>")),
      .setTemplateBody("main", "<badge/>"), .removeSecondaryTile("tile"),
      .setSecondaryTile("t2", SecondaryTile(pushChannel: "https://t2/", tags: ["q"])),
    ]
    let read = try InstallationPatch(jsonData: patch.jsonData)
    #expect(read == patch)
    let after = try read.applied(to: Self.before)
    #expect(after.tags == ["Blue", "green"])
    #expect(after.userID == "ann")
    #expect(after.pushVariables == ["a": "b/~"])
    #expect(after.pushChannel == .handle("https://n/"))
    #expect(after.templates["a/b~1"]?.tags == ["a/b~1"])
    #expect(after.templates["main"]?.body == "<badge/>")
    #expect(after.secondaryTiles.keys.sorted() == ["t2"])
    let cleared = try InstallationPatch(
      [.setTags([]), .setUserID(nil), .setPushVariables([:]), .removeTemplate("main")]
    ).applied(to: Self.before)
    #expect(cleared.tags.isEmpty && cleared.userID == nil && cleared.pushVariables.isEmpty)
    #expect(cleared.templates.isEmpty)
    #expect(try InstallationPatch([.setTags(["z"])]).applied(to: Self.before).tags == ["z"])
    #expect(
      String(decoding: InstallationPatch([.addTag("a")]).jsonData, as: UTF8.self)
        == #"[{"op":"add","path":"/tags","value":"a"}]"#)
  }
}
