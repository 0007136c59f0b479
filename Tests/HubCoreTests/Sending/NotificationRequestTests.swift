import Foundation
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Reading a send")
struct NotificationRequestTests {
  private func read(_ headers: [(name: String, value: String)], _ body: String = "{}") throws
    -> NotificationRequest
  {
    try NotificationRequest(
      headers: SendHeaders(headers), body: Array(body.utf8), limits: .strict)
  }

  private func refusal(_ headers: [(name: String, value: String)], _ body: String = "{}")
    -> HubFailure?
  {
    do {
      _ = try read(headers, body)
      return nil
    } catch {
      return error as? HubFailure
    }
  }

  private static let apple = (name: "ServiceBusNotification-Format", value: "apple")
  private static let aps = #"{"aps":{"alert":"hi"}}"#

  // MARK: Format

  @Test(
    "the format is a word in any letter case; absent means template",
    arguments: [
      (nil, NotificationRequest.Format.template), ("template", .template),
      ("Template", .template), ("apple", .native(.apns)), ("APPLE", .native(.apns)),
      ("fcmV1", .native(.fcmv1)), ("gcm", .native(.gcm)), ("adm", .native(.adm)),
      ("baidu", .native(.baidu)), ("browser", .native(.browser)), ("xiaomi", .native(.xiaomi)),
    ] as [(String?, NotificationRequest.Format)])
  func format(word: String?, expected: NotificationRequest.Format) throws {
    let headers = word.map { [(name: "Servicebusnotification-format", value: $0)] } ?? []
    let body =
      switch expected {
      case .template: "{}"
      case .native(.fcmv1): #"{"message":{}}"#
      case .native: Self.aps
      }
    #expect(try read(headers, body).format == expected)
  }

  @Test("an unknown format is refused", arguments: ["ios", "", "apns", "nokiax", "apple,template"])
  func unknownFormat(word: String) {
    let failure = refusal([(name: "ServiceBusNotification-Format", value: word)])
    #expect(failure?.status == 400)
    #expect(failure?.message?.contains("'\(word)'") == true)
  }

  // MARK: Tags

  @Test(
    "tags come from the full header, or from the tutorials' alias with its quotes stripped",
    arguments: [
      ([], nil), ([("ServiceBusNotification-Tags", "red || blue")], "red || blue"),
      ([("Tags", "\"12345\"")], "12345"), ([("tags", "12345")], "12345"),
      ([("Tags", " \" red && !blue \" ")], "red && !blue"),
      ([("Tags", "\"a\""), ("Servicebusnotification-Tags", "b")], "b"),
    ] as [([(String, String)], String?)])
  func tags(headers: [(String, String)], expected: String?) throws {
    let request = try read(headers.map { (name: $0.0, value: $0.1) })
    #expect(request.tags == expected)
    #expect(try request.expression == expected.map { try TagExpression(parsing: $0) })
  }

  @Test(
    "a tags header that is there but empty is refused: it must not broadcast",
    arguments: [
      ("ServiceBusNotification-Tags", ""), ("ServiceBusNotification-Tags", "  "), ("Tags", ""),
      ("Tags", "\"\""), ("Tags", "\" \""),
    ])
  func emptyTags(name: String, value: String) {
    #expect(refusal([(name: name, value: value)])?.status == 400)
  }

  @Test("an empty full header is refused even beside a good alias")
  func emptyFullHeader() {
    let headers = [
      (name: "ServiceBusNotification-Tags", value: ""), (name: "Tags", value: "\"12345\""),
    ]
    #expect(refusal(headers)?.status == 400)
  }

  @Test("a bad tag is answered with the service's sentence")
  func badTag() {
    let failure = refusal([(name: "ServiceBusNotification-Tags", value: "a*")])
    #expect(
      failure
        == HubFailure(
          status: 400,
          message: "An invalid tag(s) 'a*' was supplied. Valid tag characters are alphanumeric, "
            + "_, @, -, ., : and #"))
  }

  @Test("more tags than allowed are refused", arguments: [(21, "||"), (7, "&&")])
  func tooManyTags(count: Int, operation: String) {
    let text = (1...count).map { "t\($0)" }.joined(separator: operation)
    #expect(refusal([(name: "ServiceBusNotification-Tags", value: text)])?.status == 400)
  }

  @Test(
    "a header that asks for less than everyone at once is not passed over",
    arguments: ["ServiceBusNotification-DeviceHandle", "servicebusnotification-scheduletime"])
  func headersOfOtherKinds(name: String) throws {
    for value in ["2030-01-05T10:00:00", ""] {
      let found = refusal([Self.apple, (name: name, value: value)], Self.aps)
      #expect(found?.status == 400)
      #expect(found?.message?.lowercased().contains(name.lowercased()) == true)
    }
    let isScheduled = name.hasSuffix("scheduletime")
    let allowed = try NotificationRequest(
      headers: SendHeaders([Self.apple, (name: name, value: "0A")]), body: Array(Self.aps.utf8),
      limits: .strict, isDirect: !isScheduled, isScheduled: isScheduled)
    #expect(allowed.isDirect == !isScheduled)
  }

  @Test(
    "the same header twice with different values is refused, with equal ones it counts once",
    arguments: [
      "ServiceBusNotification-Tags", "Tags", "ServiceBusNotification-Format",
      "ServiceBusNotification-Apns-Expiry",
    ])
  func contradiction(name: String) {
    let values = name.hasSuffix("Format") ? ["apple", "template"] : ["a", "b"]
    let first = (name: name, value: values[0])
    let second = (name: name.lowercased(), value: values[1])
    let found = refusal([first, second], Self.aps)
    #expect(found?.status == 400)
    #expect(found?.message?.contains(name.lowercased()) == true)
    if name.hasSuffix("Tags") { #expect(refusal([first, first], "{}") == nil) }
  }

  // MARK: Body

  @Test(
    "a template body is a flat object of scalars",
    arguments: [
      ("{}", true), (#"{"message":"Hello from Postman!"}"#, true),
      (#"{"n":40,"b":true,"z":null}"#, true), ("\u{FEFF}{\"a\":\"b\"}", true), ("", false),
      ("[]", false), (#""text""#, false), (#"{"a":{"b":1}}"#, false), (#"{"a":[1]}"#, false),
      (#"{"a":"b"} x"#, false), (#"{"a":}"#, false), ("{'a':'b'}", false),
    ])
  func templateBody(body: String, isValid: Bool) {
    let expected = HubFailure(
      status: 400, message: "The supplied notification payload is invalid")
    #expect(refusal([], body) == (isValid ? nil : expected))
  }

  @Test(
    "an Apple body is a JSON object and travels as it came",
    arguments: [
      (aps, true), (#" { "mdm" : "x" } "#, true), ("[]", false), ("{", false),
      (#"{"x":1,"aps":{}}"#, true), (#"{"\u0061ps":{}}"#, true), ("{}", false),
      (#"{"x":1}"#, false), (#"{"aps":5}"#, false), (#"{"aps":[{"aps":{}}]}"#, false),
      (#"{"a":{"aps":{}}}"#, false), (#"[{"aps":{}}]"#, false), (#"{"aps":null}"#, false),
      (#"{"aps":{"alert":"hi"},}"#, false), ("{aps:{}}", false), ("", false),
      (String(repeating: "[", count: 30_000), false),
      (#"{"a":"# + String(repeating: "[", count: 30_000), false),
    ])
  func appleBody(body: String, isValid: Bool) throws {
    #expect((refusal([Self.apple], body)?.status == nil) == isValid)
    if isValid { #expect(try read([Self.apple], body).body == Array(body.utf8)) }
  }

  @Test("a body that is not UTF-8 is refused")
  func notUTF8() {
    for headers in [[], [Self.apple]] {
      #expect(throws: HubFailure.self) {
        try NotificationRequest(
          headers: SendHeaders(headers), body: Array(#"{"a":""#.utf8) + [0xFF] + Array("\"}".utf8),
          limits: .strict)
      }
    }
  }

  @Test("a byte order mark is dropped")
  func byteOrderMark() throws {
    let body = [0xEF, 0xBB, 0xBF] + Array(Self.aps.utf8)
    let request = try NotificationRequest(
      headers: SendHeaders([Self.apple]), body: body, limits: .strict)
    #expect(request.body == Array(Self.aps.utf8))
  }

  @Test("64 KB pass, one byte more is 413")
  func size() throws {
    func body(_ count: Int) -> String {
      #"{"a":""# + String(repeating: "x", count: count - 8) + "\"}"
    }
    #expect(try read([], body(65_536)).body.count == 65_536)
    #expect(refusal([], body(65_537))?.status == 413)
  }

  // MARK: Headers and expiry

  @Test("headers for the push services are kept in lower case, all others dropped")
  func passThrough() throws {
    let request = try read(
      [
        Self.apple, (name: "Apns-Priority", value: "5"), (name: "apns-topic", value: "a.b"),
        (name: "X-WNS-Type", value: "wns/toast"), (name: "X-Apns-Push-Type", value: "voip"),
        (name: "X-Apns-Priority", value: "10"), (name: "X-Forwarded-For", value: "1.2.3.4"),
        (name: "X-Custom", value: "1"), (name: "Authorization", value: "secret"),
        (name: "apns-collapse-id", value: " "),
      ], Self.aps)
    #expect(
      request.headers == [
        "apns-priority": "5", "apns-topic": "a.b", "x-wns-type": "wns/toast",
        "apns-push-type": "voip",
      ])
  }

  @Test("a header cannot smuggle in another, nor grow without bound")
  func hostileHeaders() {
    #expect(refusal([(name: "apns-topic", value: "a\r\nx: y")])?.status == 400)
    #expect(refusal([(name: "apns-topic", value: "a\u{0}")])?.status == 400)
    let many = (0..<40).map { (name: "apns-x\($0)", value: "1") }
    #expect(refusal(many)?.status == 400)
    let long = (name: "apns-topic", value: String(repeating: "a", count: 5000))
    #expect(refusal([long])?.status == 400)
  }

  @Test(
    "the expiry comes from the date header in all its forms, or from a number that wins over it",
    arguments: [
      ([("ServiceBusNotification-Apns-Expiry", "01/05/2030 10:00:00")], 1_893_837_600),
      ([("ServiceBusNotification-Apns-Expiry", "2030-01-05T10:00:00")], 1_893_837_600),
      ([("ServiceBusNotification-Apns-Expiry", "2030-01-05T10:00:00.5Z")], 1_893_837_600),
      ([("ServiceBusNotification-Apns-Expiry", "2030-01-05T12:00:00+02:00")], 1_893_837_600),
      ([("apns-expiration", "0")], 0), ([("X-Apns-Expiration", "17")], 17),
      ([("X-Apns-Expiration", "17"), ("apns-expiration", "18")], 18),
      (
        [("ServiceBusNotification-Apns-Expiry", "01/05/2030 10:00:00"), ("apns-expiration", "5")],
        5
      ), ([], nil),
    ] as [([(String, String)], Int64?)])
  func expiry(headers: [(String, String)], expected: Int64?) throws {
    let request = try read(
      [Self.apple] + headers.map { (name: $0.0, value: $0.1) }, Self.aps)
    #expect(request.expiry == expected)
    #expect(request.headers["apns-expiration"] == nil)
  }

  @Test("a date header without a date is refused; a number that is none is left to APNs")
  func badExpiry() throws {
    let date = (name: "ServiceBusNotification-Apns-Expiry", value: "tomorrow")
    #expect(refusal([Self.apple, date], Self.aps)?.status == 400)
    let request = try read([Self.apple, (name: "apns-expiration", value: "soon")], Self.aps)
    #expect(request.headers == ["apns-expiration": "soon"])
    #expect(request.expiry == nil)
  }
}
