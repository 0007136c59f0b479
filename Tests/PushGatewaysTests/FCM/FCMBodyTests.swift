import HubCore
import NotificationHubs
import Testing
import Wire

@testable import PushGateways

@Suite("The message to FCM")
struct FCMBodyTests {
  private func spliced(_ body: String) throws -> String {
    let message = try FCMBody(Array(body.utf8))
    let handle = Array("T".utf8)
    return String(decoding: message.head(for: handle[...]) + handle + message.tail, as: UTF8.self)
  }

  @Test(
    "the token goes into 'message' and all else stays as it was",
    arguments: [
      (#"{"message":{}}"#, #"{"message":{"token":"T"}}"#),
      (#"{"message":{"data":{}}}"#, #"{"message":{"token":"T","data":{}}}"#),
      (
        #" { "validate_only" : true , "message" : { "android" : {"ttl":"0s"} } } "#,
        #" { "validate_only" : true , "message" : {"token":"T", "android" : {"ttl":"0s"} } } "#
      ),
      (
        #"{"m\u0065ssage":{"data":{"message":"x","token":"y"}}}"#,
        #"{"m\u0065ssage":{"token":"T","data":{"message":"x","token":"y"}}}"#
      ),
    ])
  func splicing(body: String, expected: String) throws {
    #expect(try spliced(body) == expected)
    _ = try JSONValue.parse(try spliced(body).utf8)
  }

  @Test(
    "what FCM could not take for one device is refused",
    arguments: [
      "", "{", "[]", "7", "{}", #"{"message":7}"#, #"{"message":{"token":"x"}}"#,
      #"{"message":{"fid":"x"}}"#, #"{"message":{"f\u0069d":"x"}}"#, #"{"message":{"topic":"x"}}"#,
      #"{"message":{"condition":"x"}}"#,
      #"{"message":{"t\u006fken":"x"}}"#, #"{"message":{},"message":{}}"#, #"{"message":{}} x"#,
      #"{"data":{"message":{}}}"#,
    ])
  func refusals(body: String) {
    do throws(PushRefusal) {
      _ = try FCMBody(Array(body.utf8))
      Issue.record("taken: \(body)")
    } catch {
      #expect(error.result.outcome == .invalidNotificationFormat)
    }
  }

  @Test(
    "a handle goes out as 'fid' when it has the form of a Firebase installation id, else as 'token'",
    arguments: [
      ("cAbcdefghij_klmn-opq09", "fid"), ("fAAAAAAAAAAAAAAAAAAAAA", "fid"),
      ("gAAAAAAAAAAAAAAAAAAAAA", "token"), ("bAAAAAAAAAAAAAAAAAAAAA", "token"),
      ("CAAAAAAAAAAAAAAAAAAAAA", "token"), ("cAAAAAAAAAAAAAAAAAAAA", "token"),
      ("cAAAAAAAAAAAAAAAAAAAAAA", "token"), ("cAAAAAAAAAAAAAAAAAAA+A", "token"),
      ("cAAAAAAAAAAAAAAAAAAAAA:APA91b", "token"), ("cAAAAAAAAAA:APA91bAAAA", "token"),
    ])
  func installationIDs(handle: String, member: String) throws {
    let message = try FCMBody(Array(#"{"message":{"data":{}}}"#.utf8))
    let head = String(decoding: message.head(for: Array(handle.utf8)[...]), as: UTF8.self)
    #expect(head == #"{"message":{"\#(member)":""#)
  }

  @Test("bytes that are no UTF-8 are refused")
  func notText() {
    let bytes = Array(#"{"message":{"data":{"a":""#.utf8) + [0xFF] + Array(#""}}}"#.utf8)
    #expect(throws: PushRefusal.self) { try FCMBody(bytes) }
  }

  @Test("a message that is surely too large is refused for its size; near the edge FCM decides")
  func size() throws {
    func body(_ count: Int) -> [UInt8] {
      Array(#"{"message":{"data":{"a":"\#(String(repeating: "x", count: count))"}}}"#.utf8)
    }
    do throws(PushRefusal) {
      _ = try FCMBody(body(5000))
      Issue.record("5000 bytes are taken")
    } catch {
      #expect(error.result.outcome == .invalidNotificationSize)
    }
    _ = try FCMBody(body(4095))
  }
}
