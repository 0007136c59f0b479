import Foundation
import NotificationHubs
import Testing

@Suite("FCM messages")
struct FCMMessageTests {
  private func text(_ message: FCMMessage) -> String {
    String(decoding: message.body, as: UTF8.self)
  }

  @Test("a notification for Android takes texts that are known only when the app runs")
  func variables() throws {
    typealias Android = FCMMessage.AndroidNotification
    let (title, body): (String, String?) = ("Tea", nil)
    #expect(Android(title: title, body: body, icon: "pot") == .init(title: "Tea", icon: "pot"))
    #expect(Android(body: .init(title)) == .init(body: "Tea"))
    #expect(Android(icon: "pot").title == nil)
  }

  @Test("data alone is a message")
  func data() throws {
    let message = try FCMMessage(data: ["b": "2", "a": "\"1\""])
    #expect(text(message) == #"{"message":{"data":{"a":"\"1\"","b":"2"}}}"#)
    #expect(message.size == #"{"a":"\"1\"","b":"2"}"#.utf8.count)
    #expect(PushNotification(message).format == .native(.fcmv1))
  }

  @Test("every block has the service's names")
  func blocks() throws {
    let message = try FCMMessage(
      notification: .init(title: "Tea", body: "ready", image: URL(string: "https://example.com/p")),
      android: .init(
        priority: .high, ttl: .milliseconds(1500), collapseKey: "tea",
        restrictedPackageName: "com.example", directBoot: true, data: ["k": "v"],
        notification: .init(
          title: .localized(key: "t", arguments: ["x"]), body: "b", icon: "i", color: "#00ff7F",
          sound: "default", tag: "g", clickAction: "OPEN", channelID: "c", importance: .high,
          visibility: .private, count: 2, isSticky: false)),
      apns: try APNsPayload(.init(badge: 1), delivery: .init(priority: .powerAware)),
      webpush: .init(
        ttl: 60, urgency: .high, topic: "tea", data: ["k": "v"], notification: ["renotify": true],
        link: URL(string: "https://example.com/tea")),
      analyticsLabel: "tea_1")
    #expect(
      text(message)
        == #"{"message":{"android":{"collapse_key":"tea","data":{"k":"v"},"direct_boot_ok":true,"#
        + #""notification":{"body":"b","channel_id":"c","click_action":"OPEN","color":"#
        + "\"#00ff7F\""
        + #","icon":"i","notification_count":2,"notification_priority":"PRIORITY_HIGH","#
        + #""sound":"default","sticky":false,"tag":"g","title_loc_args":["x"],"#
        + #""title_loc_key":"t","visibility":"PRIVATE"},"priority":"HIGH","#
        + #""restricted_package_name":"com.example","ttl":"1.500000000s"},"#
        + #""apns":{"headers":{"apns-priority":"5","apns-push-type":"alert"},"#
        + #""payload":{"aps":{"badge":1}}},"fcm_options":{"analytics_label":"tea_1"},"#
        + #""notification":{"body":"ready","image":"https://example.com/p","title":"Tea"},"#
        + #""webpush":{"data":{"k":"v"},"fcm_options":{"link":"https://example.com/tea"},"#
        + #""headers":{"TTL":"60","Topic":"tea","Urgency":"high"},"#
        + #""notification":{"renotify":true}}}}"#)
  }

  @Test(
    "a time to live is written in seconds",
    arguments: [
      (Duration.zero, "0s"), (.seconds(3600), "3600s"), (.seconds(28 * 86_400), "2419200s"),
      (.nanoseconds(3_000_000_001), "3.000000001s"),
    ])
  func ttl(ttl: Duration, expected: String) throws {
    let message = try FCMMessage(android: .init(ttl: ttl))
    #expect(text(message) == #"{"message":{"android":{"ttl":"\#(expected)"}}}"#)
  }

  @Test(
    "names that the service keeps for itself are refused",
    arguments: ["from", "message_type", "google", "google.x", "gcm", "gcm.n.e"])
  func reserved(name: String) {
    for make in [
      { () throws -> FCMMessage in try FCMMessage(data: [name: "v"]) },
      { () throws -> FCMMessage in try FCMMessage(android: .init(data: [name: "v"])) },
      { () throws -> FCMMessage in try FCMMessage(webpush: .init(data: [name: "v"])) },
    ] {
      let error = #expect(throws: PayloadError.self) { try make() }
      #expect(error?.kind == .reserved)
      #expect(error?.member.hasSuffix(".\(name)") == true)
    }
  }

  @Test("a name that only begins like a reserved one with another letter is fine")
  func nearlyReserved() throws {
    #expect(try FCMMessage(data: ["fromage": "v", "message_types": "v", "Google": "v"]).size > 0)
  }

  @Test("what the service would refuse cannot be made")
  func faults() throws {
    let http = try #require(URL(string: "http://example.com/"))
    let cases: [(String, () throws -> FCMMessage)] = [
      ("message", { try FCMMessage() }),
      ("message.notification", { try FCMMessage(notification: .init()) }),
      ("message.notification.image", { try FCMMessage(notification: .init(image: http)) }),
      ("message.android.ttl", { try FCMMessage(android: .init(ttl: .seconds(-1))) }),
      ("message.android.ttl", { try FCMMessage(android: .init(ttl: .seconds(2_419_201))) }),
      (
        "message.android.notification.color",
        { try FCMMessage(android: .init(notification: .init(color: "red"))) }
      ),
      (
        "message.android.notification.notification_count",
        { try FCMMessage(android: .init(notification: .init(count: -1))) }
      ),
      ("TTL", { try FCMMessage(webpush: .init(ttl: -1)) }),
      ("Topic", { try FCMMessage(webpush: .init(topic: "a b")) }),
      ("message.webpush.fcm_options.link", { try FCMMessage(webpush: .init(link: http)) }),
      (
        "message.fcm_options.analytics_label",
        { try FCMMessage(data: ["k": "v"], analyticsLabel: "a b") }
      ),
      ("message.data", { try FCMMessage(data: ["": "v"]) }),
    ]
    for (member, make) in cases {
      let error = #expect(throws: PayloadError.self, "\(member)") { try make() }
      #expect(error?.member == member)
    }
  }

  @Test("4096 bytes of what is counted are taken, and not one more")
  func size() throws {
    let frame = #"{"k":""}"#.utf8.count
    let full = try FCMMessage(data: ["k": String(repeating: "x", count: 4096 - frame)])
    #expect(full.size == full.limit)
    let error = #expect(throws: PayloadError.self) {
      try FCMMessage(data: ["k": String(repeating: "x", count: 4097 - frame)])
    }
    #expect(error?.kind == .tooLarge)
  }
}
