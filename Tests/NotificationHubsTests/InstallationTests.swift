import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("Installations")
struct InstallationTests {
  static let token = "62BCD3484834B7E2DC56733AC5509259230CC1BA82BA1AE7D06E91908A05A8FA"

  static func decode(_ text: String, id: String? = nil) throws -> Installation {
    try Installation.decode(Array(text.utf8), id: id)
  }

  static func request(_ text: String, id: String = "i-1") throws -> Installation {
    try Installation.decodeRequest(Array(text.utf8), id: id)
  }

  @Test("installations, templates and tags are Codable in the form of the wire")
  func codable() throws {
    let phone = Installation(
      installationID: "i", userID: "u", platform: .browser,
      pushChannel: .subscription(endpoint: "https://p/1", p256dh: "a", auth: "b"),
      expirationTime: Date(timeIntervalSince1970: 1_900_000_000), tags: ["News", "b"],
      pushVariables: ["name": "Ada"],
      templates: ["m": PushTemplate(body: "{}", headers: ["x": "y"], expiry: "$(e)", tags: ["t"])])
    let json = try JSONEncoder().encode(phone)
    #expect(try Installation(jsonData: json) == phone)
    #expect(try JSONDecoder().decode(Installation.self, from: json) == phone)
    #expect(try JSONDecoder().decode(Installation.self, from: phone.jsonData) == phone)
    let template = try #require(phone.templates["m"])
    #expect(
      try JSONDecoder().decode(PushTemplate.self, from: JSONEncoder().encode(template)) == template)
    #expect(
      String(decoding: try JSONEncoder().encode([Tag("News")]), as: UTF8.self) == #"["News"]"#)
    // The names are the wire's, not those that encoder and decoder might agree on.
    let wire = try JSONDecoder().decode(
      PushTemplate.self,
      from: Data(#"{"body":"{}","headers":{"x":"y"},"expiry":"$(e)","tags":["t"]}"#.utf8))
    #expect(wire.body == "{}" && wire.headers == ["x": "y"])
    #expect(wire.expiry == "$(e)" && wire.tags == ["t"])
    #expect(throws: (any Error).self) {
      try JSONDecoder().decode(Installation.self, from: Data(#"{"platform":"x"}"#.utf8))
    }
  }

  @Test(
    "what the service was recorded to return reads and prints back byte for byte",
    arguments: [
      #"{"installationId":"95e4cf2e-685f-4141-98e2-4c5f71d1a696","pushChannel":"62BC","pushChannelExpired":false,"platform":"apns","expirationTime":"9999-12-31T23:59:59.9999999Z","tags":["tag1"],"pushVariables":{"var1":"value1"},"templates":{"Template Name":{"body":"{\"aps\":{\"alert\":\"alert!\"}}","expiry":"2018-11-07T16:18:32.6641371-08:00","tags":["Template Name"]}}}"#,
      #"{"installationId":"08c88ecf","pushChannel":"62BC","pushChannelExpired":false,"platform":"apns","expirationTime":"9999-12-31T23:59:59.9999999Z","userId":"d798d460-79d2-449a-b2fc-fa5bf4090f38"}"#,
      #"{"installationId":"i","pushChannel":"https://some.url/","pushChannelExpired":true,"platform":"wns","expirationTime":"2030-01-05T10:00:00.0000000Z","templates":{"t":{"body":"<toast/>","headers":{"X-WNS-Type":"wns/toast"},"tags":["x","t"]}},"secondaryTiles":{"tile":{"pushChannel":"https://a/","pushChannelExpired":false,"tags":["s"],"templates":{"u":{"body":"<tile/>","tags":["u"]}}}}}"#,
      #"{"installationId":"b","pushChannel":{"endpoint":"https://push.example/1","p256dh":"p","auth":"a"},"pushChannelExpired":false,"platform":"browser","expirationTime":"9999-12-31T23:59:59.9999999Z"}"#,
      #"{"installationId":"b","pushChannel":"{\"endpoint\":\"https://push.example/1\",\"p256dh\":\"p\",\"auth\":\"a\"}","pushChannelExpired":false,"platform":"browser","expirationTime":"9999-12-31T23:59:59.9999999Z"}"#,
    ])
  func roundTrip(text: String) throws {
    let installation = try Self.decode(text)
    #expect(String(decoding: installation.hubJSON, as: UTF8.self) == text)
    #expect(try Installation.decode(installation.hubJSON) == installation)
    #expect(try installation.validated() == installation)
  }

  @Test("what a client sends leaves out what only the hub decides")
  func clientForm() throws {
    let installation = Installation(
      installationID: "i-1", platform: .apns, pushChannel: .apns(Data([0x0a, 0xff, 0x3c])),
      tags: ["12345"],
      templates: ["main": PushTemplate(body: #"{"aps":{"alert":"$(message)"}}"#)])
    let text = String(decoding: installation.jsonData, as: UTF8.self)
    #expect(
      text == #"{"installationId":"i-1","pushChannel":"0AFF3C","platform":"apns","tags":["12345"],"#
        + #""templates":{"main":{"body":"{\"aps\":{\"alert\":\"$(message)\"}}"}}}"#)
    #expect(try Installation(jsonData: installation.jsonData) == installation)
  }

  @Test("names ignore letter case, quotes may be single or missing, null is absent")
  func leniency() throws {
    let installation = try Self.request(
      """
      \u{FEFF}{ INSTALLATIONID : 'i-1', "userID":"bob", Platform:'APNS', pushChannel:"0a1b",
        expiredPushChannel: true, tags:null, "pushVariables":{"n":5,'x':null}, expirationTime: null,
        Templates: {main: {BodyTemplate: '{"aps":{"alert":"it\\'s"}}', headers:null, tags:[]}},
        "unknown": [1,{"a":[]}], lastUpdate:"2030-01-01T00:00:00Z"}
      """)
    #expect(installation.userID == "bob")
    #expect(installation.platform == .apns)
    #expect(installation.pushChannel == .handle("0A1B"))
    #expect(!installation.pushChannelExpired)
    #expect(installation.pushVariables == ["n": "5"])
    #expect(installation.templates["main"]?.body == #"{"aps":{"alert":"it's"}}"#)
    #expect(installation.templates["main"]?.tags == ["main"])
    #expect(installation.expirationTime == nil)
    let empty = #"{"installationId":"i","platform":"apns","pushChannel":"00","expirationTime":" "}"#
    #expect(try Installation(jsonData: Data(empty.utf8)).expirationTime == nil)
  }

  @Test("both names of the expired flag are read")
  func expiredFlag() throws {
    for name in ["pushChannelExpired", "expiredPushChannel"] {
      let text = #"{"installationId":"i","platform":"gcm","pushChannel":"x","\#(name)":true}"#
      #expect(try Self.decode(text).pushChannelExpired)
      #expect(!(try Self.request(text, id: "i").pushChannelExpired))
    }
  }

  @Test(
    "dates in every form that clients send",
    arguments: [
      ("2030-10-01T10:00+0000", 1_917_079_200), ("2030-10-01T10:00:00Z", 1_917_079_200),
      ("2030-10-01T10:00:00", 1_917_079_200), ("2030-10-01T12:30:00+02:30", 1_917_079_200),
      ("2030-10-01T02:00:00.0000000-0800", 1_917_079_200), ("2030-10-01", 1_917_043_200),
      ("2030-10-01'T'10:00:00", 1_917_079_200), ("10/01/2030 10:00:00", 1_917_079_200),
      ("2030-10-01 10:00:00", 1_917_079_200), ("2028-02-29T00:00:00Z", 1_835_395_200),
    ])
  func dates(text: String, seconds: Double) throws {
    let date = try #require(WireDate.parse(text))
    #expect(date == Date(timeIntervalSince1970: seconds))
    #expect(WireDate.parse(WireDate.precise(date)) == date)
  }

  @Test("a time of whole milliseconds or microseconds is written without noise, and reads back")
  func exactFractions() throws {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<10_000 {
      let milliseconds = Int64.random(in: 0..<4_102_444_800_000, using: &generator)
      let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
      let text = WireDate.precise(date)
      let digits = String(milliseconds % 1000)
      let fraction = String(repeating: "0", count: 3 - digits.count) + digits
      #expect(text.hasSuffix(".\(fraction)0000Z"), "\(milliseconds): \(text)")
      #expect(WireDate.parse(text) == date)
      let microseconds = Int64.random(in: 0..<1_000_000, using: &generator)
      let fine = Date(timeIntervalSince1970: 1_893_837_600 + Double(microseconds) / 1e6)
      #expect(WireDate.precise(fine).hasSuffix("0Z"))
      #expect(WireDate.parse(WireDate.precise(fine)) == fine)
    }
    #expect(
      WireDate.parse("2030-01-05T10:00:16.588Z").map(WireDate.trimmed)
        == "2030-01-05T10:00:16.588Z")
  }

  @Test(
    "dates that are none",
    arguments: [
      "", "soon", "2030-13-01T00:00:00Z", "2029-02-29T00:00:00Z", "2030-10-01T25:00:00Z",
      "2030-10-01T10:00:00Q", "2030-10-01T10:00:00Z1", "2030-10-01T", "0000-01-01", "2030-1-1",
    ])
  func badDates(text: String) { #expect(WireDate.parse(text) == nil) }

  @Test("dates are written as documented")
  func writtenDates() {
    let date = Date(timeIntervalSince1970: 1_565_758_699.25)
    #expect(WireDate.precise(date) == "2019-08-14T04:58:19.2500000Z")
    #expect(WireDate.trimmed(date) == "2019-08-14T04:58:19.25Z")
    #expect(WireDate.trimmed(Date(timeIntervalSince1970: 0)) == "1970-01-01T00:00:00Z")
    #expect(WireDate.american(date) == "8/14/2019 4:58:19 AM")
    #expect(WireDate.american(Date(timeIntervalSince1970: 43_200)) == "1/1/1970 12:00:00 PM")
    #expect(WireDate.precise(.distantFuture) == "4001-01-01T00:00:00.0000000Z")
    #expect(WireDate.precise(Date(timeIntervalSince1970: .infinity)) == WireDate.never)
    #expect(WireDate.precise(Date(timeIntervalSince1970: -1e30)).hasPrefix("0001-01-01"))
  }

  private static let head = "The provided request body is invalid. Error: "
  private static let lines = "Installation validation failed with following error(s):\r\n"

  @Test(
    "faults are named in the service's words",
    arguments: [
      (
        #"{"pushChannel":"00"}"#,
        head + "'Platform' property is not specified or given value is not supported."
      ),
      (
        #"{"platform":"apple","pushChannel":"00"}"#,
        head + "'Platform' property is not specified or given value is not supported."
      ),
      (#"{"platform":"apns"}"#, lines + "'PushChannel' is required."),
      (#"{"platform":"apns","pushChannel":null}"#, lines + "'PushChannel' is required."),
      (#"{"platform":"apns","pushChannel":" "}"#, lines + "'PushChannel' is required."),
      (
        #"{"platform":"apns","pushChannel":"00","tags":["a b","ok","c,d"]}"#,
        lines
          + "An invalid tag(s) 'a b,c,d' was supplied. Valid tag characters are alphanumeric, _, @, -, ., : and #"
      ),
      (
        #"{"platform":"apns","pushChannel":"00","tags":["$UserId:{x}"]}"#,
        lines + "Tags can not start with $"
      ),
      (
        #"{"platform":"apns","pushChannel":"00","tags":"a"}"#,
        head + "'Tags' must be an array of texts."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","tags":[1]}"#,
        head + "'Tags' must be an array of texts."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","pushVariables":{"a":{}}}"#,
        head + "'PushVariables' must be an object of texts."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","templates":[]}"#,
        head + "'Templates' must be an object."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","templates":{"a":"b"}}"#,
        head + "An item of 'Templates' must be an object with a 'Body'."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","templates":{"a":{"body":{"aps":{}}}}}"#,
        head + "'Body' must be a text."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","templates":{"a":{}}}"#,
        lines + "'Body' of the template 'a' is required."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","expirationTime":"soon"}"#,
        head + "'ExpirationTime' must be a date such as 2030-10-01T10:00:00Z."
      ),
      (
        #"{"platform":"apns","pushChannel":"0"}"#,
        lines + "'PushChannel' must be a device token in hexadecimal digits."
      ),
      (
        #"{"platform":"gcm","pushChannel":{}}"#,
        head + "'PushChannel' must be a text for the platform 'gcm'."
      ),
      (
        #"{"platform":"browser","pushChannel":"x"}"#,
        head + "'PushChannel' must hold a subscription with endpoint, p256dh and auth."
      ),
      (
        #"{"platform":"apns","pushChannel":"00","installationId":"other"}"#,
        head + "'InstallationId' differs from the id in the address."
      ),
      (
        #"{"platform":"fcmv1","pushChannel":"a\u0000b"}"#,
        lines + "Handles and names must not have the character U+0000."
      ),
      (
        #"{"platform":"fcmv1","pushChannel":"a","templates":{"t\u0000":{"body":"{}"}}}"#,
        lines + "Handles and names must not have the character U+0000."
      ),
      (
        #"{"platform":"wns","pushChannel":"a","secondaryTiles":{"t\u0000":{"pushChannel":"b"}}}"#,
        lines + "Handles and names must not have the character U+0000."
      ),
      (
        #"{"platform":"wns","pushChannel":"a","secondaryTiles":{"#
          + (0...100).map { #""t\#($0)":{"pushChannel":"b"}"# }.joined(separator: ",") + "}}",
        lines + "There can be 100 'SecondaryTiles' at most."
      ),
      ("[]", head + "An installation must be a JSON object."),
    ])
  func faults(text: String, message: String) {
    let error = #expect(throws: WireFormatError.self) { try Self.request(text) }
    #expect(error?.message == message)
  }

  @Test(
    "faults of members are named in a fixed order, whatever that of the document, after those of its syntax",
    arguments: [
      (
        #"{"templates":[],"tags":"a","expirationTime":"soon","pushChannel":"00","platform":"apns"}"#,
        head + "'ExpirationTime' must be a date such as 2030-10-01T10:00:00Z."
      ),
      (
        #"{"templates":[],"tags":"a","pushChannel":"00","platform":"apns"}"#,
        head + "'Tags' must be an array of texts."
      ),
      (#"{"tags":"a","pushChannel":{},"platform":[]}"#, head + "'Platform' must be a text."),
      (
        #"{"templates":{"a":{"tags":1,"headers":1},"b":{"body":[]}},"pushChannel":"00","platform":"apns"}"#,
        head + "'Headers' must be an object of texts."
      ),
      (
        #"{"tags":"a","pushChannel":"00","platform":"apns"}]"#,
        head
          + "The JSON text is not well-formed: something follows the end of the JSON document at "
          + "offset 49."
      ),
      (
        #"{"tags":"a","other":[{"b":"\q"}]}"#,
        head + "The JSON text is not well-formed: the escape is not known to JSON at offset 27."
      ),
    ])
  func faultsInOrder(text: String, message: String) {
    let error = #expect(throws: WireFormatError.self) { try Self.request(text) }
    #expect(error?.message == message)
  }

  @Test("bytes that are not UTF-8 are refused in members that are ignored, too")
  func invalidUTF8() {
    for (member, offset) in [
      ("\"other\":\"", 10), ("\"", 2), ("\"tags\":1,\"other\":{\"a\":[\"", 25),
    ] {
      let bytes = Array("{\(member)".utf8) + [0xFF] + Array("\"".utf8)
      let error = #expect(throws: WireFormatError.self) {
        try Installation.decodeRequest(bytes + Array(":1}".utf8), id: "i")
      }
      #expect(
        error?.message == Self.head
          + "The JSON text is not well-formed: a text is not UTF-8 at offset \(offset).")
    }
  }

  @Test("the last member of a name counts, and what is wrong with one before it does not")
  func repeatedMembers() throws {
    let installation = try Self.request(
      #"""
      {"platform":[],"pushChannel":{},"tags":7,"templates":{"a":1},"PLATFORM":"apns",
        "pl\u0061tform":"fcmv1","pushChannel":"x","Tags":["a"],"templates":{"b":{"body":1,"Body":"y"}},
        "pushVariables":{"n":"1"},"pushVariables":null}
      """#)
    #expect(installation.platform == .fcmv1)
    #expect(installation.pushChannel == .handle("x"))
    #expect(installation.tags == ["a"])
    #expect(installation.templates.mapValues(\.body) == ["b": "y"])
    #expect(installation.pushVariables.isEmpty)
  }

  @Test("every fault gets its line")
  func severalFaults() {
    let error = #expect(throws: WireFormatError.self) {
      try Self.request(
        #"{"platform":"apns","pushChannel":"x","userId":"a b","secondaryTiles":{"t":{}}}"#,
        id: "i 1")
    }
    #expect(error?.message.components(separatedBy: "\r\n").count == 6)
  }

  @Test("at most 60 tags, second spellings not counted")
  func tagCount() throws {
    func body(_ count: Int) -> String {
      let tags = (1...count).flatMap { ["\"t\($0)\"", "\" T\($0) \""] }.joined(separator: ",")
      return #"{"platform":"gcm","pushChannel":"x","tags":[\#(tags)]}"#
    }
    #expect(try Self.request(body(60)).tags.count == 60)
    #expect(try Self.request(body(60)).tags.first?.rawValue == "t1")
    #expect(throws: WireFormatError.self) { try Self.request(body(61)) }
  }
}
