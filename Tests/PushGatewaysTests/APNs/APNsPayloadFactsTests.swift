import NotificationHubs
import Testing

@testable import PushGateways

@Suite("APNs payloads")
struct APNsPayloadFactsTests {
  @Test(
    "the payload suggests the kind of push",
    arguments: [
      (#"{"aps":{"alert":"x"}}"#, APNsPayload.PushType.alert), (#"{"aps":{"badge":0}}"#, .alert),
      (#"{"aps":{"sound":"a","content-available":1}}"#, .alert),
      (#"{"aps":{"content-available":1}}"#, .background),
      (#"{ "aps" : { "content-available" : 1 , "x" : [ {} ] } , "k" : null }"#, .background),
      (#"{"aps":{"content-available":0}}"#, .alert), (#"{"aps":{"content-available":10}}"#, .alert),
      (#"{"aps":{"content-available":"1"}}"#, .alert), (#"{"mdm":"x"}"#, .mdm),
      (#"{"aps":"odd"}"#, .alert), ("{}", .alert), (#"{"alert":1}"#, .alert),
    ])
  func derivation(json: String, expected: APNsPayload.PushType) throws {
    #expect(try #require(APNsPayloadFacts(Array(json.utf8))).pushType == expected)
  }

  @Test(
    "what is not a JSON object is no payload",
    arguments: [
      "", " ", "[]", "1", "null", "{", "}", "{}}", "{} x", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#,
      "{a:1}", #"{"aps":{"alert":"x}"#, #"{"aps":{"content-available":1.}}"#, "{\"a\":\"\u{1}\"}",
    ])
  func malformed(json: String) {
    #expect(APNsPayloadFacts(Array(json.utf8)) == nil)
  }

  @Test("text that is not UTF-8 is no payload")
  func encoding() {
    let head = Array(#"{"a":""#.utf8)
    let tail = Array(#""}"#.utf8)
    #expect(APNsPayloadFacts(head + Array("é😀".utf8) + tail) != nil)
    #expect(APNsPayloadFacts(head + [0xFF] + tail) == nil)
    #expect(APNsPayloadFacts(head + [0xC3] + tail) == nil)
  }

  @Test("a topic's suffix tells the kind, the longest word first")
  func topics() {
    #expect(APNsPayload.PushType(topic: "com.example.app") == nil)
    #expect(APNsPayload.PushType(topic: "com.example.app.voip") == .voip)
    #expect(APNsPayload.PushType(topic: "com.example.app.voip-ptt") == .pushtotalk)
    #expect(APNsPayload.PushType(topic: "com.example.app.push-type.liveactivity") == .liveactivity)
  }
}
