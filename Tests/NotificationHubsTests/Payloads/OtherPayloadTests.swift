import Foundation
import NotificationHubs
import Testing

@Suite("Web Push, ADM, Baidu and Xiaomi payloads")
struct OtherPayloadTests {
  private func text(_ payload: some PushPayload) -> String {
    String(decoding: payload.body, as: UTF8.self)
  }

  @Test("a message for browsers is any JSON value, with RFC 8030's headers")
  func webPush() throws {
    let payload = try WebPushPayload(
      ["title": "Tea"], ttl: 60, urgency: .veryLow, topic: "tea-_1")
    #expect(text(payload) == #"{"title":"Tea"}"#)
    #expect(payload.headers == ["TTL": "60", "Urgency": "very-low", "Topic": "tea-_1"])
    #expect(text(try WebPushPayload("plain \"text\"")) == #""plain \"text\"""#)
    #expect(PushNotification(payload).format == .native(.browser))
  }

  @Test("what encryption leaves room for is taken, and not one byte more")
  func webPushSize() throws {
    let full = try WebPushPayload(.string(String(repeating: "x", count: 3991)))
    #expect(full.size == 3993 && full.limit == 3993)
    let error = #expect(throws: PayloadError.self) {
      try WebPushPayload(.string(String(repeating: "x", count: 3992)))
    }
    #expect(error?.kind == .tooLarge)
  }

  @Test("an ADM message has the service's names")
  func adm() throws {
    let payload = try ADMMessage(
      data: ["k": "v"], notification: ["title": "Tea"], consolidationKey: "tea",
      expiresAfter: .seconds(60), priority: .high)
    #expect(
      text(payload)
        == #"{"consolidationKey":"tea","data":{"k":"v"},"expiresAfter":60,"#
        + #""notification":{"title":"Tea"},"priority":"high"}"#)
    let frame = #"{"data":{"k":""}}"#.utf8.count
    #expect(try ADMMessage(data: ["k": String(repeating: "x", count: 6144 - frame)]).size == 6144)
    #expect(throws: PayloadError.self) {
      try ADMMessage(data: ["k": String(repeating: "x", count: 6145 - frame)])
    }
  }

  @Test("a Baidu message says in a header who gets it")
  func baidu() throws {
    let shown = try BaiduMessage(
      .init(
        title: "Tea", description: "ready", style: [.vibrates, .clearable], builderID: 0,
        action: .open(try #require(URL(string: "https://example.com"))), custom: ["pot": 2]))
    #expect(
      text(shown)
        == #"{"custom_content":{"pot":2},"description":"ready","notification_basic_style":3,"#
        + #""notification_builder_id":0,"open_type":1,"title":"Tea","url":"https://example.com"}"#)
    #expect(shown.headers == ["X-Baidu-Message-Type": "1"])
    let hidden = try BaiduMessage(transparent: ["k": "v"])
    #expect(text(hidden) == #"{"k":"v"}"#)
    #expect(hidden.headers == ["X-Baidu-Message-Type": "0"])
    let intent = try BaiduMessage(.init(description: "d", action: .intent("#Intent;end")))
    #expect(text(intent).contains(#""open_type":2,"pkg_content":"#))
  }

  @Test("a Xiaomi message has the names of the API's parameters")
  func xiaomi() throws {
    let shown = try XiaomiMessage(
      .init(
        title: "Tea", description: "ready", effects: [.sound, .lights], id: 7,
        action: .openPage(try #require(URL(string: "https://example.com"))), channelID: "c"),
      payload: "pot=2",
      delivery: .init(
        ttl: .seconds(60), sendTime: Date(timeIntervalSince1970: 1.5), jobKey: "j",
        packageName: "com.example"))
    #expect(
      text(shown)
        == #"{"description":"ready","extra.channel_id":"c","extra.jobkey":"j","#
        + #""extra.notify_effect":"3","extra.web_uri":"https://example.com","notify_id":7,"#
        + #""notify_type":5,"pass_through":0,"payload":"pot=2","#
        + #""restricted_package_name":"com.example","time_to_live":60000,"time_to_send":1500,"#
        + #""title":"Tea"}"#)
    #expect(shown.size == 5)
    let hidden = try XiaomiMessage(passThrough: String(repeating: "x", count: 4096))
    #expect(hidden.size == hidden.limit)
  }

  @Test("what a service would refuse cannot be made")
  func faults() {
    let cases: [(String, () throws -> any PushPayload)] = [
      ("TTL", { try WebPushPayload("x", ttl: 2_419_201) }),
      ("Topic", { try WebPushPayload("x", topic: "") }),
      ("Topic", { try WebPushPayload("x", topic: String(repeating: "t", count: 33)) }),
      ("data", { try ADMMessage() }),
      (
        "consolidationKey",
        { try ADMMessage(data: ["k": "v"], consolidationKey: String(repeating: "c", count: 65)) }
      ),
      ("expiresAfter", { try ADMMessage(data: ["k": "v"], expiresAfter: .seconds(59)) }),
      ("expiresAfter", { try ADMMessage(data: ["k": "v"], expiresAfter: .seconds(2_678_401)) }),
      ("description", { try BaiduMessage(.init(description: "")) }),
      (
        "notification_basic_style",
        {
          try BaiduMessage(.init(description: "d", style: .init(rawValue: 8)))
        }
      ),
      ("message", { try BaiduMessage(transparent: [:]) }),
      (
        "message",
        { try BaiduMessage(transparent: ["k": .string(String(repeating: "x", count: 4096))]) }
      ),
      ("title", { try XiaomiMessage(.init(title: "", description: "d")) }),
      (
        "title",
        { try XiaomiMessage(.init(title: String(repeating: "t", count: 50), description: "d")) }
      ),
      (
        "description",
        { try XiaomiMessage(.init(title: "t", description: String(repeating: "d", count: 128))) }
      ),
      ("payload", { try XiaomiMessage(passThrough: "") }),
      ("payload", { try XiaomiMessage(passThrough: String(repeating: "x", count: 4097)) }),
      ("time_to_live", { try XiaomiMessage(passThrough: "x", delivery: .init(ttl: .zero)) }),
    ]
    for (member, make) in cases {
      let error = #expect(throws: PayloadError.self, "\(member)") { try make() }
      #expect(error?.member == member)
    }
  }

  @Test("a channel is what its platform's own library hands out")
  func channels() throws {
    #expect(PushChannel.fcm(registrationToken: "t:A").handle == "t:A")
    #expect(
      PushChannel.wns(channelURI: "https://db5.notify.windows.com/?token=A%2fb").handle
        == "https://db5.notify.windows.com/?token=A%2fb")
    #expect(PushChannel.adm(registrationID: "amzn1.x").handle == "amzn1.x")
    #expect(PushChannel.xiaomi(registrationID: "r==").handle == "r==")
    let json =
      #"{"endpoint":"https://p.example/1","expirationTime":null,"keys":{"auth":"a","p256dh":"p"}}"#
    #expect(
      try PushChannel.browser(subscriptionJSON: Data(json.utf8))
        == .subscription(endpoint: "https://p.example/1", p256dh: "p", auth: "a"))
    #expect(throws: WireFormatError.self) {
      try PushChannel.browser(subscriptionJSON: Data(#"{"endpoint":"x"}"#.utf8))
    }
  }
}
