import NotificationHubs
import Testing

@testable import HubCore

@Suite("The size of a native payload")
struct PayloadSizeTests {
  private func request(
    _ format: String, _ body: String, _ headers: [(String, String)] = []
  ) throws -> NotificationRequest {
    try NotificationRequest(
      headers: SendHeaders(
        [(name: "ServiceBusNotification-Format", value: format)]
          + headers.map { (name: $0.0, value: $0.1) }),
      body: Array(body.utf8), limits: .extended)
  }

  private static func filled(_ count: Int) -> String { String(repeating: "x", count: count) }

  @Test(
    "what no device can get is refused when it is sent, to the byte",
    arguments: [
      ("apple", #"{"aps":{"alert":"#, 4096), ("browser", #"{"a":"#, 3993),
      ("fcmv1", #"{"message":{"data":{"a":"#, 4096),
    ])
  func limits(format: String, start: String, limit: Int) throws {
    func body(_ count: Int) -> String {
      let closing = String(repeating: "}", count: start.count { $0 == "{" })
      return start + "\"" + Self.filled(count) + "\"" + closing
    }
    // FCM counts what it likes: the names and texts inside count here, the brackets do not.
    let frame = format == "fcmv1" ? 1 : body(0).utf8.count
    _ = try request(format, body(limit - frame))
    do {
      _ = try request(format, body(limit - frame + 1))
      Issue.record("taken")
    } catch {
      let failure = try #require(error as? HubFailure)
      #expect(failure.status == 413)
      #expect(failure.message?.contains("\(limit + 1) bytes") == true)
      #expect(failure.message?.hasSuffix("\(limit)") == true)
    }
  }

  @Test("a voip push of Apple has more room, whatever says that it is one")
  func voip() throws {
    let body = #"{"aps":{"alert":"\#(Self.filled(4500))"}}"#
    _ = try request("apple", body, [("apns-push-type", "voip")])
    _ = try request("apple", body, [("apns-topic", "com.example.app.voip")])
    #expect(throws: HubFailure.self) { try request("apple", body) }
  }

  @Test(
    "preview and explanation call too large what a send refuses, and nothing else",
    arguments: PushPlatform.allCases)
  func oneRule(platform: PushPlatform) throws {
    let fcm = #"{"message":{"android":{"x":"\#(Self.filled(5000))"}}}"#
    for headers in [
      [:], ["apns-push-type": "voip"], ["x-apns-push-type": "voip"], ["apns-topic": "a.voip"],
      ["apns-topic": "a.voip", "apns-push-type": "alert"],
    ] {
      let limit = PayloadSize.limit(for: platform, headers: headers)
      let bodies = [limit ?? 4096, (limit ?? 4096) + 1, 8000].map { Self.filled($0) } + [fcm]
      for text in bodies {
        var body = PushBody(bytes: Array(text.utf8))
        body.headers = headers
        let excess = PayloadSize.excess(of: body.bytes, for: platform, headers: headers)
        #expect(body.isTooLarge(for: platform) == (excess != nil))
        let rendering = NotificationExplanation.Rendering(body, missing: [], platform: platform)
        #expect(rendering.limit == limit && (excess == nil || excess?.limit == limit))
      }
    }
    #expect(PayloadSize.limit(for: .mpns) == 3072)
    let alert = ["apns-topic": "a.voip", "apns-push-type": "alert"]
    #expect(PayloadSize.limit(for: .apns, headers: alert) == 4096)
  }

  @Test("an FCM body that names a target is refused with the member's name, escapes read")
  func targets() {
    for (member, name) in [
      ("token", "token"), ("fid", "fid"), (#"f\u0069d"#, "fid"), ("topic", "topic"),
      ("condition", "condition"),
    ] {
      do {
        _ = try request("fcmv1", #"{"message":{"data":{"a":"b"},"\#(member)":"x"}}"#)
        Issue.record("taken: \(member)")
      } catch {
        let failure = error as? HubFailure
        #expect(failure?.status == 400)
        #expect(
          failure?.message?.hasPrefix(
            "The supplied notification payload is invalid: 'message.\(name)'")
            == true)
      }
    }
  }

  @Test("in an FCM message only data and notification count")
  func counted() throws {
    let filler = Self.filled(5000)
    _ = try request("fcmv1", #"{"message":{"android":{"x":"\#(filler)"}}}"#)
    _ = try request("fcmv1", #"{"other":{"data":{"a":"\#(filler)"}},"message":{}}"#)
    let escaped = String(repeating: #"\u0061"#, count: 4000)
    _ = try request("fcmv1", #"{"message":{"notification":{"title":"\#(escaped)"}}}"#)
    #expect(throws: HubFailure.self) {
      try request("fcmv1", #"{"message":{"notification":{"title":"\#(filler)"}}}"#)
    }
  }

  @Test("a browser gets the headers of RFC 8030, from a native and from a template send")
  func browserHeaders() throws {
    let headers = [("TTL", "60"), ("Urgency", "high"), ("Topic", "t")]
    for format in ["browser", "template"] {
      let sent = try request(format, "{}", headers)
      for (name, value) in headers {
        #expect(sent.headers[name.lowercased()] == value)
        #expect(PassThroughHeaders.isRead(by: .browser, name.lowercased()))
        #expect(!PassThroughHeaders.isRead(by: .apns, name.lowercased()))
      }
    }
    #expect(try request("apple", #"{"aps":{}}"#, headers).headers.isEmpty)
  }
}
