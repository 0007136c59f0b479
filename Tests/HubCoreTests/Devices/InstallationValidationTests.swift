import Foundation
import HubCore
import HubTesting
import NotificationHubs
import Testing

/// docs/protocol/rest.md, sections 3.11, 4.1 and 4.2, docs/protocol/tags.md, section 1.
@Suite("An installation that breaks a rule")
struct InstallationValidationTests {
  private func put(_ json: String, id: String = "i-1") async throws {
    let test = try await TestHub()
    do {
      try await test.service.installations.put(hub: test.hub, id: id, body: Array(json.utf8))
    } catch {
      await #expect(throws: HubFailure.noInstallation) {
        try await test.service.installations.get(hub: test.hub, id: id)
      }
      throw error
    }
  }

  private static func apns(_ members: String) -> String {
    #"{"platform":"apns","pushChannel":"00","# + members + "}"
  }

  private static func template(_ members: String) -> String {
    apns(#""templates":{"t":{"# + members + "}}")
  }

  private static func headers(count: Int) -> String {
    "{" + (1...count).map { "\"apns-\($0)\":\"1\"" }.joined(separator: ",") + "}"
  }

  static let faults: [(String, String)] = [
    (#"{"platform":"apns"}"#, "'PushChannel' is required."),
    (#"{"platform":"apns","pushChannel":""}"#, "'PushChannel' is required."),
    (#"{"platform":"apns","pushChannel":"xyz"}"#, "hexadecimal"),
    (#"{"platform":"apns","pushChannel":"abc"}"#, "hexadecimal"),
    (#"{"platform":"gcm","pushChannel":" "}"#, "'PushChannel' is required."),
    (#"{"platform":"wns","pushChannel":"not a uri"}"#, "absolute URI"),
    (#"{"platform":"mpns","pushChannel":"/path"}"#, "absolute URI"),
    (
      #"{"platform":"browser","pushChannel":{"endpoint":"x","p256dh":"y","auth":"z"}}"#,
      "absolute URI"
    ),
    (apns(#""tags":["a b"]"#), "An invalid tag(s) 'a b' was supplied. Valid tag characters are"),
    (apns(#""tags":["a,b"]"#), "An invalid tag(s) 'a,b'"),
    (apns(#""tags":[""]"#), "An invalid tag(s) ''"),
    (apns(#""tags":["$InstallationId:{x}"]"#), "Tags can not start with $"),
    (apns(#""tags":["\#(String(repeating: "a", count: 121))"]"#), "An invalid tag(s)"),
    (apns(#""tags":[\#((1...61).map { "\"t\($0)\"" }.joined(separator: ","))]"#), "60"),
    (apns(#""userId":"a b""#), "'UserId'"),
    (template(##""body":"{\"a\":\"$(x\"}""##), "body, byte 6: '$(x' is no valid expression"),
    (template(#""body":"hello""#), "neither a JSON object nor an XML document"),
    (template(#""body":"""#), "'Body'"),
    (template(#""body":"{}","headers":{"X-Thing":"1"}"#), "'apns-'"),
    (template(#""body":"{}","headers":{"apns-topic":"$x1"}"#), "header 'apns-topic', byte 0"),
    (template(#""body":"{}","headers":{"apns-priority":"256"}"#), "0 to 255"),
    (template(#""body":"{}","headers":{"apns-expiration":"soon"}"#), "whole number"),
    (template(#""body":"{}","headers":\#(headers(count: 33))"#), "33 headers"),
    (
      template(#""body":"{}","headers":{"apns-topic":"\#(String(repeating: "a", count: 4096))"}"#),
      "at most 4096"
    ),
    (
      #"{"platform":"gcm","pushChannel":"g","templates":{"t":{"body":"{}","headers":\#(headers(count: 33))}}}"#,
      "33 headers"
    ),
    (
      apns(#""pushVariables":{"a":"\#(String(repeating: "a", count: 65_536))"}"#),
      "'PushVariables'"
    ),
    (template(#""body":"{}","expiry":"soon""#), "'Expiry'"),
    (template(#""body":"{}","expiry":"$(x""#), "expiry, byte 0"),
    (
      apns(#""templates":{"\#(String(repeating: "n", count: 201))":{"body":"{}"}}"#),
      "name of a template"
    ),
    (
      apns(
        #""templates":{\#((1...101).map { "\"t\($0)\":{\"body\":\"{}\"}" }.joined(separator: ","))}"#
      ),
      "at most 100"
    ),
    (
      #"{"platform":"wns","pushChannel":"https://h/1","secondaryTiles":{"s":{"pushChannel":"x","templates":{"t":{"body":"<a"}}}}}"#,
      "the tile 's'"
    ),
    (apns(#""secondaryTiles":{"s":{"pushChannel":"https://h/2"}}"#), "'wns' only"),
  ]

  @Test("is refused with a line that names the fault, and nothing is kept", arguments: faults)
  func faultIsNamed(json: String, fault: String) async throws {
    let failure = await #expect(throws: HubFailure.self) { try await put(json) }
    #expect(failure?.status == 400)
    let lines = failure?.message?.components(separatedBy: "\r\n") ?? []
    #expect(lines.first == "Installation validation failed with following error(s):")
    #expect(lines.dropFirst().contains { $0.contains(fault) }, "\(lines)")
  }

  @Test("all faults are reported at once")
  func allFaults() async throws {
    let json = """
      {"platform":"apns","pushChannel":"abc","tags":["a b"],"userId":"x y",
       "templates":{"t":{"body":"{\\"a\\":\\"$x1\\",\\"b\\":\\"{}\\"}","expiry":"soon"}}}
      """
    let failure = await #expect(throws: HubFailure.self) { try await put(json, id: "a b") }
    #expect(failure?.message?.components(separatedBy: "\r\n").count == 1 + 7)
  }

  @Test(
    "is refused before its rules are looked at when it cannot be read",
    arguments: [
      ("", "The provided request body is invalid."), ("[]", "must be a JSON object"),
      ("{\"platform\":\"apns\",", "The provided request body is invalid."),
      (
        #"{"platform":"apple","pushChannel":"00"}"#,
        "The provided request body is invalid. Error: 'Platform' property is not specified or "
          + "given value is not supported."
      ),
      (
        #"{"pushChannel":"00"}"#,
        "'Platform' property is not specified or given value is not supported."
      ),
      (#"{"installationId":"other","platform":"apns","pushChannel":"00"}"#, "differs from the id"),
      (#"{"platform":"apns","pushChannel":"00","tags":"red"}"#, "'Tags' must be"),
      (#"{"platform":"apns","pushChannel":"00","tags":[{}]}"#, "'Tags' must be"),
      (#"{"platform":"apns","pushChannel":"00","templates":[]}"#, "'Templates' must be"),
      (#"{"platform":"apns","pushChannel":{}}"#, "'PushChannel' must be"),
      (#"{"platform":"apns","pushChannel":"00","expirationTime":"soon"}"#, "'ExpirationTime'"),
    ])
  func unreadable(json: String, fault: String) async throws {
    let failure = await #expect(throws: HubFailure.self) { try await put(json) }
    #expect(failure?.status == 400)
    #expect(failure?.message?.contains(fault) == true, "\(failure as Any)")
  }

  @Test(
    "is not what these are",
    arguments: [
      // A JSON body under a toast header was stored by the service.
      #"{"platform":"wns","pushChannel":"https://h/1","templates":{"t":{"body":"{\"a\":1}","headers":{"X-WNS-Type":"wns/toast"}}}}"#,
      #"{"platform":"fcmV1","pushChannel":"x","templates":{"Template Name":{"body":"{}","headers":{"Content-Type":"x"},"expiry":"whenever","tags":["Template Name"]}}}"#,
      #"{"platform":"browser","pushChannel":"{\"endpoint\":\"https://p/1\",\"p256dh\":\"y\",\"auth\":\"z\"}"}"#,
      #"{"installationID":"I-1","platform":"APNS","pushChannel":"aB","tags":[" é ","É"],"unknown":{}}"#,
      #"{"platform":"apns","pushChannel":"00","templates":{"t":{"body":" { } ","headers":{"Apns-Priority":"10","apns-expiration":"$(x)"},"expiry":"0"}}}"#,
    ])
  func accepted(json: String) async throws { try await put(json) }
}
