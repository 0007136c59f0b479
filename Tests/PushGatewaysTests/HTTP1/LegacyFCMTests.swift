import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Messages of Google Cloud Messaging on their way to FCM v1")
struct LegacyFCMTests {
  @Test(
    "a legacy message becomes one of HTTP v1",
    arguments: [
      (
        #"{"data":{"a":"b","n":1,"o":{"x":[true]}}}"#,
        #"{"message":{"data":{"a":"b","n":"1","o":"{\"x\":[true]}"}}}"#
      ),
      (
        #"{"notification":{"title":"t","body":"b","sound":"s"},"dry_run":true}"#,
        #"{"validate_only":true,"message":{"notification":{"title":"t","body":"b"},"#
          + #""android":{"notification":{"sound":"s"}}}}"#
      ),
      (
        #"{"to":"x","registration_ids":["y"],"content_available":true,"collapse_key":"k","#
          + #""time_to_live":60,"priority":"high","restricted_package_name":"p"}"#,
        #"{"message":{"android":{"collapse_key":"k","ttl":"60s","priority":"HIGH","#
          + #""restricted_package_name":"p"}}}"#
      ),
      ("{}", #"{"message":{}}"#),
    ])
  func conversion(legacy: String, expected: String) {
    let converted = LegacyFCMGateway.converted(Array(legacy.utf8))
    #expect(converted.map { String(decoding: $0, as: UTF8.self) } == expected)
  }

  @Test("what is no message stays for the gateway to refuse")
  func garbage() {
    #expect(LegacyFCMGateway.converted(Array("[1]".utf8)) == nil)
    #expect(LegacyFCMGateway.converted(Array("{".utf8)) == nil)
  }

  @Test("each is rewritten before the gateway of FCM v1 gets it")
  func delivery() async {
    let fcm = FakeGateway()
    let way = PushGatewayDirectory(clock: .system, random: .system).legacy(fcm)
    let body = PushBody(bytes: Array(#"{"data":{}}"#.utf8))
    #expect(await way.deliver(PushBatch(to: "A", body)).map(\.outcome) == [.success])
    #expect(fcm.pushes.map(\.body) == [#"{"message":{"data":{}}}"#])
  }
}
