import NotificationHubs
import Testing

@testable import HubCore

@Suite("The body of a native send")
struct NativeBodyTests {
  private func refusal(
    _ format: String, _ body: String, _ headers: [(String, String)] = []
  ) -> HubFailure? {
    do {
      _ = try NotificationRequest(
        headers: SendHeaders(
          [(name: "ServiceBusNotification-Format", value: format)]
            + headers.map { (name: $0.0, value: $0.1) }),
        body: Array(body.utf8), limits: .strict)
      return nil
    } catch {
      return error as? HubFailure ?? HubFailure(status: 0, message: "\(error)")
    }
  }

  private static let invalid = HubFailure(
    status: 400, message: "The supplied notification payload is invalid")

  @Test(
    "a payload that its push service takes from nobody is refused at once",
    arguments: [
      ("apple", 4096), ("windows", 5000), ("adm", 6144), ("baidu", 4096), ("windowsphone", 3072),
    ])
  func sizes(format: String, limit: Int) {
    let isXML = format.hasPrefix("windows")
    let (start, end) = isXML ? ("<toast>", "</toast>") : (#"{"aps":{},"data":""#, "\"}")
    let room = limit - start.utf8.count - end.utf8.count
    let fits = start + String(repeating: "x", count: room) + end
    #expect(refusal(format, fits) == nil)
    let refused = refusal(format, start + String(repeating: "x", count: room + 1) + end)
    #expect(refused?.status == 413)
    #expect(refused?.message?.contains("at most \(limit)") == true)
  }

  @Test(
    "a JSON body has the form of its format, and names no device of its own",
    arguments: [
      ("fcmv1", #"{"message":{"notification":{"title":"t"}}}"#, true),
      ("fcmv1", #"{"message":{"data":{"token":"mine","topic":"a","condition":"b"}}}"#, true),
      ("fcmv1", #"{"validate_only":true,"message":{}}"#, true), ("fcmv1", "{}", false),
      ("fcmv1", #"{"message":"hi"}"#, false), ("fcmv1", #"{"message":[{"data":{}}]}"#, false),
      ("fcmv1", #"{"notification":{"message":{}}}"#, false), ("fcmv1", "[]", false),
      ("fcmv1", #"{"message":{"token":"x"}}"#, false),
      ("fcmv1", #"{"message":{"data":{"a":[1]},"topic":"x"}}"#, false),
      ("fcmv1", #"{"message":{"condition":"x"}}"#, false),
      ("fcmv1", #"{"message":{"\u0074oken":"x"}}"#, false),
      ("fcmv1", #"{"message":{"token":"x"},"message":{}}"#, false),
      ("fcmv1", #"{"message":{}"#, false), ("fcmv1", #"{"message":{}} x"#, false),
      ("gcm", #"{"data":{"to":"b"}}"#, true), ("gcm", #"{"notification":{"title":"t"}}"#, true),
      ("gcm", #"{"data":{},"to":"x"}"#, false),
      ("gcm", #"{"registration_ids":["x"],"data":{}}"#, false), ("gcm", "[]", false),
      ("gcm", "text", false), ("adm", #"{"data":{"a":"b"}}"#, true), ("adm", "{", false),
      ("adm", "text", false), ("xiaomi", #"{"payload":"a"}"#, true), ("xiaomi", "<a/>", false),
      ("baidu", #"{"title":"t","description":"d"}"#, true), ("baidu", "title=t", false),
      ("browser", #"{"title":"t"}"#, true), ("browser", #""hi""#, true), ("browser", "[1]", true),
      ("browser", "hi", false), ("browser", "", false), ("browser", "{} {}", false),
    ])
  func json(format: String, body: String, isValid: Bool) {
    let message = Self.invalid.message ?? ""
    let found = refusal(format, body)
    #expect(found?.status == (isValid ? nil : 400))
    #expect(found?.message?.hasPrefix(message) == (isValid ? nil : true))
  }

  @Test(
    "Windows bodies are XML unless they are raw",
    arguments: [
      ([], "<toast><visual/></toast>", true), ([], "<toast>", false), ([], "text", false),
      ([], #"<?xml version="1.0" encoding="utf-16"?><tile/>"#, true),
      ([], #"<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>"#, false),
      ([("X-WNS-Type", "wns/raw")], "text", true),
      ([("Content-Type", "application/octet-stream")], "text", true),
      ([("Content-Type", "application/octet-stream"), ("X-WNS-Type", "wns/toast")], "text", false),
    ] as [([(String, String)], String, Bool)])
  func windows(headers: [(String, String)], body: String, isValid: Bool) {
    #expect(refusal("windows", body, headers) == (isValid ? nil : Self.invalid))
  }

  @Test(
    "Windows Phone bodies are XML unless their class is a raw one",
    arguments: [
      ([], "<Notification/>", true), ([], "<foo", false), ([], "text", false),
      ([("X-NotificationClass", "3")], "text", true), ([("X-NotificationClass", "3")], "", false),
      ([("X-NotificationClass", "13")], "<foo", true),
      ([("X-NotificationClass", "23")], "text", true),
      ([("X-NotificationClass", "2")], "<foo", false),
      ([("X-WindowsPhone-Target", "toast")], "<foo", false),
      ([("X-WindowsPhone-Target", "toast"), ("X-NotificationClass", "2")], "<toast/>", true),
      ([("X-WindowsPhone-Target", "toast"), ("X-NotificationClass", "3")], "text", false),
    ] as [([(String, String)], String, Bool)])
  func windowsPhone(headers: [(String, String)], body: String, isValid: Bool) {
    #expect(refusal("windowsphone", body, headers) == (isValid ? nil : Self.invalid))
  }
}
