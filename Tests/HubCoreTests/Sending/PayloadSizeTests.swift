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
