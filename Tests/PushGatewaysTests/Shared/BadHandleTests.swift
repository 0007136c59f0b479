import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import Testing

@testable import PushGateways

/// Handles that can be no device's: whatever let them in, nobody is asked and the sender is told.
@Suite("Handles of the wrong form", .timeLimit(.minutes(5)))
struct BadHandleTests {
  private static let keys =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    + "\nBTBZMqHH6r4Tts7J_aSIgg"

  @Test(
    "are BadChannel without a request",
    arguments: [
      (PushPlatform.apns, ["", "xyz", "0A B1", "0a/../1", "é"]),
      (.fcmv1, ["", "a b", "a\nb", "é", "\"", String(repeating: "x", count: 4097)]),
      (
        .wns,
        [
          "", "text", "http://db5.notify.windows.com/?token=1", "https://evil.example/?token=1",
          "https://10.0.0.1/?token=1", "https://127.0.0.2/?token=1", "https://[::1]/?token=1",
          "https://169.254.169.254/latest/meta-data", "https://db5.notify.windows.com:8443/x",
          "https://user@db5.notify.windows.com/x", "file:///etc/passwd",
        ]
      ),
      (
        .browser,
        [
          "", "text", "https://10.0.0.1/wp/1\n" + keys, "https://192.168.1.1/wp/1\n" + keys,
          "https://127.0.0.2/wp/1\n" + keys, "https://[::1]/wp/1\n" + keys,
          "https://169.254.169.254/latest\n" + keys, "https://evil.example/wp/1\n" + keys,
          "http://fcm.googleapis.com/fcm/send/1\n" + keys, "ftp://x/\n" + keys,
        ]
      ),
      (.adm, ["", String(repeating: "x", count: 5000)]),
      (.baidu, ["", "abc", "1-"]), (.xiaomi, ["", "a,b"]),
    ])
  func handles(platform: PushPlatform, handles: [String]) async throws {
    try await StandInStage.run { stage in
      let directory = PushGatewayDirectory(
        stage.configuration, clock: stage.clock.hubClock, random: .system)
      let gateway = try #require(
        try await directory.gateway(for: try stage.credential(platform), hub: 1))
      let body = PushBody(
        bytes: Array(
          [
            .wns: "<toast/>", .fcmv1: #"{"message":{}}"#, .adm: #"{"data":{"a":"b"}}"#,
            .xiaomi: #"{"pass_through":1,"payload":"x"}"#,
          ][platform, default: #"{"aps":{}}"#].utf8))
      var batch = PushBatch(bodies: [body])
      for handle in handles { batch.add(handle) }
      let results = await gateway.deliver(batch)
      for (handle, result) in zip(handles, results) {
        #expect(result.outcome == .badChannel, "\(handle): \(result.reason ?? "")")
        #expect(result.status == 0 && result.retry == .final)
        #expect(handle.count < 2 || result.reason?.contains(handle) != true)
      }
      await directory.close()
    }
  }
}
