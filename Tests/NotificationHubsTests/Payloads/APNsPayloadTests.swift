import Foundation
import NotificationHubs
import Testing

@Suite("APNs payloads")
struct APNsPayloadTests {
  private func text(_ payload: some PushPayload) -> String {
    String(decoding: payload.body, as: UTF8.self)
  }

  @Test("an alert takes texts that are known only when the app runs")
  func variables() throws {
    let (title, body): (String, String?) = ("Tea", nil)
    #expect(APNsPayload.Alert(title: title, body: body) == .init(title: "Tea"))
    #expect(APNsPayload.Alert(body: .init(title)) == .init(body: "Tea"))
  }

  @Test("an alert with everything has Apple's names, sorted")
  func everything() throws {
    let payload = try APNsPayload(
      .init(
        alert: .init(
          title: "Tea", subtitle: .localized(key: "POT", arguments: ["2"]), body: "It's ready.",
          launchImage: "kettle"),
        badge: 3, sound: .critical(name: "whistle.caf", volume: 0.5),
        interruptionLevel: .timeSensitive, relevanceScore: 0.75, isMutable: true,
        isContentAvailable: true, threadID: "kitchen", category: "TEA",
        targetContentID: "window", filterCriteria: "home"),
      custom: ["pot": 2, "strong": true, "tags": ["green", nil, 1.5]],
      delivery: .init(
        priority: .powerAware, expiration: .at(Date(timeIntervalSince1970: 1_893_456_000.9)),
        collapseID: "tea", bundleID: "com.example.app"))
    #expect(
      text(payload)
        == #"{"aps":{"alert":{"body":"It's ready.","launch-image":"kettle","subtitle-loc-args":["2"],"#
        + #""subtitle-loc-key":"POT","title":"Tea"},"badge":3,"category":"TEA","#
        + #""content-available":1,"filter-criteria":"home","interruption-level":"time-sensitive","#
        + #""mutable-content":1,"relevance-score":0.75,"#
        + #""sound":{"critical":1,"name":"whistle.caf","volume":0.5},"#
        + #""target-content-id":"window","thread-id":"kitchen"},"#
        + #""pot":2,"strong":true,"tags":["green",null,1.5]}"#)
    #expect(
      payload.headers == [
        "apns-push-type": "alert", "apns-priority": "5", "apns-expiration": "1893456000",
        "apns-collapse-id": "tea", "apns-topic": "com.example.app",
      ])
    #expect(payload.size == payload.body.count)
    #expect(payload.limit == 4096)
  }

  @Test("a body that is localized has the keys without a prefix")
  func localizedBody() throws {
    let payload = try APNsPayload(
      .init(alert: .init(title: .localized(key: "T"), body: .localized(key: "B", arguments: ["x"])))
    )
    #expect(
      text(payload) == #"{"aps":{"alert":{"loc-args":["x"],"loc-key":"B","title-loc-key":"T"}}}"#)
  }

  @Test("a badge of 0 and the system's sound are enough")
  func badge() throws {
    let payload = try APNsPayload(.init(badge: 0, sound: .standard))
    #expect(text(payload) == #"{"aps":{"badge":0,"sound":"default"}}"#)
  }

  @Test("equal payloads have equal bytes, whatever order their values were written in")
  func deterministic() throws {
    let names = (0..<50).map { "key\($0)" }
    let one = Dictionary(uniqueKeysWithValues: names.map { ($0, PayloadValue.int(1)) })
    let two = Dictionary(uniqueKeysWithValues: names.reversed().map { ($0, PayloadValue.int(1)) })
    #expect(
      try APNsPayload.background(custom: one).body == APNsPayload.background(custom: two).body)
  }

  static let kinds: [(APNsPayload.PushType, String, String)] = [
    (.background, "", #"{"aps":{"content-available":1},"k":"v"}"#),
    (.voip, ".voip", #"{"aps":{},"k":"v"}"#),
    (.complication, ".complication", #"{"aps":{},"k":"v"}"#),
    (.location, ".location-query", #"{"aps":{},"k":"v"}"#),
    (.pushtotalk, ".voip-ptt", #"{"aps":{},"k":"v"}"#),
    (.controls, ".push-type.controls", #"{"aps":{"content-changed":true},"k":"v"}"#),
    (.widgets, ".push-type.widgets", #"{"aps":{"content-changed":true},"k":"v"}"#),
    (.mdm, "", #"{"mdm":"magic"}"#),
    (
      .fileprovider, ".pushkit.fileprovider",
      #"{"aps":{},"container-identifier":"NSFileProviderWorkingSetContainerItemIdentifier","domain":"d"}"#
    ),
  ]

  @Test("each kind has its topic and its payload", arguments: kinds)
  func kind(type: APNsPayload.PushType, suffix: String, body: String) throws {
    let delivery = APNsPayload.Delivery(bundleID: "com.example.app")
    let custom: [String: PayloadValue] = ["k": "v"]
    let payload =
      switch type {
      case .background: try APNsPayload.background(custom: custom, delivery: delivery)
      case .voip: try APNsPayload.voip(custom: custom, delivery: delivery)
      case .complication: try APNsPayload.complication(custom: custom, delivery: delivery)
      case .location: try APNsPayload.location(custom: custom, delivery: delivery)
      case .pushtotalk: try APNsPayload.pushToTalk(custom: custom, delivery: delivery)
      case .controls: try APNsPayload.controls(custom: custom, delivery: delivery)
      case .widgets: try APNsPayload.widgets(custom: custom, delivery: delivery)
      case .mdm: try APNsPayload.deviceManagement(pushMagic: "magic", delivery: delivery)
      default: try APNsPayload.fileProvider(domain: "d", delivery: delivery)
      }
    #expect(payload.pushType == type)
    #expect(text(payload) == body)
    #expect(payload.headers["apns-push-type"] == type.rawValue)
    #expect(payload.headers["apns-topic"] == "com.example.app" + suffix)
  }

  @Test("a Push to Talk push is for now, unless one says otherwise")
  func pushToTalk() throws {
    let payload = try APNsPayload.pushToTalk(custom: [:])
    #expect(payload.headers["apns-priority"] == "10")
    #expect(payload.headers["apns-expiration"] == "0")
    let other = try APNsPayload.pushToTalk(custom: [:], delivery: .init(priority: .powerAware))
    #expect(other.headers["apns-priority"] == "5")
  }

  @Test("a background push is never urgent")
  func backgroundPriority() throws {
    #expect(throws: PayloadError.self) {
      try APNsPayload.background(delivery: .init(priority: .immediate))
    }
    for priority in [APNsPayload.Priority.powerAware, .low] {
      let payload = try APNsPayload.background(delivery: .init(priority: priority))
      #expect(payload.headers["apns-priority"] == String(priority.rawValue))
    }
    #expect(try APNsPayload.background().headers["apns-priority"] == nil)
  }

  @Test("a payload may fill its kind's limit, and not one byte more", arguments: [4096, 5120])
  func size(limit: Int) throws {
    func payload(_ count: Int) throws -> APNsPayload {
      let custom: [String: PayloadValue] = ["k": .string(String(repeating: "x", count: count))]
      return limit == 5120
        ? try .voip(custom: custom) : try .location(custom: custom)
    }
    let frame = #"{"aps":{},"k":""}"#.utf8.count
    let full = try payload(limit - frame)
    #expect(full.size == limit && full.limit == limit)
    let error = #expect(throws: PayloadError.self) { try payload(limit - frame + 1) }
    #expect(error?.kind == .tooLarge)
    #expect(error?.description.contains("\(limit + 1) bytes; at most \(limit)") == true)
  }

  private struct Fault: CustomTestStringConvertible, Sendable {
    let member: String
    let kind: PayloadError.Kind
    let make: @Sendable () throws -> APNsPayload
    init(
      _ member: String, _ kind: PayloadError.Kind,
      _ make: @escaping @Sendable () throws -> APNsPayload
    ) { (self.member, self.kind, self.make) = (member, kind, make) }
    var testDescription: String { "\(member) \(kind)" }
  }

  private static let hi = APNsPayload.Alert(body: "hi")
  private static let faults: [Fault] = [
    Fault("aps", .missing) { try APNsPayload(.init(threadID: "t")) },
    Fault("aps.alert", .missing) { try APNsPayload(.init(badge: 1, isMutable: true)) },
    Fault("aps.alert", .missing) { try APNsPayload(.init(alert: .init())) },
    Fault("aps.alert.loc-key", .malformed) {
      try APNsPayload(.init(alert: .init(body: .localized(key: ""))))
    },
    Fault("aps.alert.launch-image", .malformed) {
      try APNsPayload(.init(alert: .init(body: "b", launchImage: "")))
    },
    Fault("aps.badge", .outOfRange) { try APNsPayload(.init(badge: -1)) },
    Fault("aps.relevance-score", .outOfRange) {
      try APNsPayload(.init(alert: hi, relevanceScore: 1.1))
    },
    Fault("aps.relevance-score", .outOfRange) {
      try APNsPayload(.init(alert: hi, relevanceScore: .nan))
    },
    Fault("aps.sound", .malformed) { try APNsPayload(.init(sound: .named(""))) },
    Fault("aps.sound.volume", .outOfRange) {
      try APNsPayload(.init(sound: .critical(volume: 2)))
    },
    Fault("aps.thread-id", .malformed) { try APNsPayload(.init(alert: hi, threadID: "")) },
    Fault("aps", .reserved) { try APNsPayload(.init(alert: hi), custom: ["aps": 1]) },
    Fault("payload.k", .outOfRange) {
      try APNsPayload(.init(alert: hi), custom: ["k": .double(.infinity)])
    },
    Fault("apns-collapse-id", .outOfRange) {
      try APNsPayload(
        .init(alert: hi), delivery: .init(collapseID: String(repeating: "c", count: 65)))
    },
    Fault("apns-collapse-id", .malformed) {
      try APNsPayload(.init(alert: hi), delivery: .init(collapseID: "a\r\nb"))
    },
    Fault("apns-collapse-id", .malformed) {
      try APNsPayload(.init(alert: hi), delivery: .init(collapseID: "é"))
    },
    Fault("apns-topic", .malformed) {
      try APNsPayload(.init(alert: hi), delivery: .init(bundleID: "com.example/app"))
    },
    Fault("apns-topic", .malformed) {
      try APNsPayload.voip(custom: [:], delivery: .init(bundleID: "com.example.app.voip"))
    },
    Fault("mdm", .malformed) { try APNsPayload.deviceManagement(pushMagic: "") },
    Fault("domain", .malformed) { try APNsPayload.fileProvider(domain: "") },
  ]

  @Test("what Apple would refuse or ignore cannot be made", arguments: faults)
  private func fault(_ fault: Fault) {
    let error = #expect(throws: PayloadError.self) { try fault.make() }
    #expect(error?.member == fault.member)
    #expect(error?.kind == fault.kind)
  }

  @Test("values that nest without end are refused before they are encoded")
  func nesting() {
    var value: PayloadValue = []
    for _ in 0..<100 { value = [value] }
    let deep = value
    let error = #expect(throws: PayloadError.self) {
      try APNsPayload.background(custom: ["k": deep])
    }
    #expect(error?.kind == .outOfRange)
  }

  @Test("a payload becomes the notification that is sent")
  func notification() throws {
    let payload = try APNsPayload.background()
    let notification = PushNotification(payload)
    #expect(notification.format == .native(.apns))
    #expect(notification.body == payload.body)
    #expect(notification.headers == payload.headers)
    #expect(notification.contentType == "application/json;charset=utf-8")
  }
}
