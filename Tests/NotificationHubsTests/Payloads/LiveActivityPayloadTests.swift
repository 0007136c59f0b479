import Foundation
import NotificationHubs
import Testing

@Suite("Live Activity payloads")
struct LiveActivityPayloadTests {
  private struct State: Codable {
    let stops: Int
    let arrival: Date
  }

  private let now = Date(timeIntervalSince1970: 1_700_000_000.5)
  private let state: PayloadValue = ["stops": 3]

  private func text(_ payload: APNsPayload) -> String {
    String(decoding: payload.body, as: UTF8.self)
  }

  @Test("a start names the attributes and how the activity is notified of changes")
  func start() throws {
    let payload = try APNsPayload.liveActivity(
      .start(attributesType: "RideAttributes", attributes: ["line": "7"], updates: .token),
      contentState: state, timestamp: now,
      alert: .init(title: .localized(key: "%@ comes", arguments: ["Bus"]), body: "3 stops"),
      sound: .named("bell.caf"), staleDate: now + 600, relevanceScore: 100,
      delivery: .init(bundleID: "com.example.app"))
    #expect(
      text(payload)
        == #"{"aps":{"alert":{"body":"3 stops","sound":"bell.caf","#
        + #""title":{"loc-args":["Bus"],"loc-key":"%@ comes"}},"attributes":{"line":"7"},"#
        + #""attributes-type":"RideAttributes","content-state":{"stops":3},"event":"start","#
        + #""input-push-token":1,"relevance-score":100.0,"stale-date":1700000600,"#
        + #""timestamp":1700000000}}"#)
    #expect(
      payload.headers == [
        "apns-push-type": "liveactivity",
        "apns-topic": "com.example.app.push-type.liveactivity",
      ])
  }

  @Test("an update has the state and its time")
  func update() throws {
    let payload = try APNsPayload.liveActivity(
      .update, contentState: state, timestamp: now, delivery: .init(priority: .powerAware))
    #expect(
      text(payload)
        == #"{"aps":{"content-state":{"stops":3},"event":"update","timestamp":1700000000}}"#)
    #expect(payload.headers["apns-priority"] == "5")
  }

  @Test("an end may say when the activity leaves the Lock Screen")
  func end() throws {
    let payload = try APNsPayload.liveActivity(
      .end(dismissal: now + 60), contentState: state, timestamp: now)
    #expect(
      text(payload)
        == #"{"aps":{"content-state":{"stops":3},"dismissal-date":1700000060,"event":"end","#
        + #""timestamp":1700000000}}"#)
  }

  @Test("a start can subscribe to a broadcast channel")
  func channel() throws {
    let payload = try APNsPayload.liveActivity(
      .start(attributesType: "A", attributes: [:], updates: .channel("dHN0LXNyY2gtY2hubA==")),
      contentState: [:], timestamp: now, alert: .init(body: "b"))
    #expect(text(payload).contains(#""input-push-channel":"dHN0LXNyY2gtY2hubA==""#))
  }

  @Test("a content state is encoded as ActivityKit decodes it")
  func encoded() throws {
    let value = try PayloadValue(
      encoding: State(stops: 3, arrival: Date(timeIntervalSinceReferenceDate: 5)))
    #expect(value == ["stops": 3, "arrival": 5])
    let payload = try APNsPayload.liveActivity(.update, contentState: value, timestamp: now)
    struct Body: Decodable {
      struct APS: Decodable {
        let state: State
        enum CodingKeys: String, CodingKey { case state = "content-state" }
      }
      let aps: APS
    }
    let read = try JSONDecoder().decode(Body.self, from: payload.body).aps.state
    #expect(read.arrival == Date(timeIntervalSinceReferenceDate: 5))
  }

  @Test("what ActivityKit would ignore cannot be made")
  func faults() {
    let hi = APNsPayload.Alert(body: "hi")
    let start = APNsPayload.ActivityEvent.start(attributesType: "A", attributes: [:])
    let cases: [(String, () throws -> APNsPayload)] = [
      ("aps.content-state", { try .liveActivity(.update, contentState: "no object") }),
      ("aps.alert", { try .liveActivity(start, contentState: state) }),
      (
        "aps.attributes",
        {
          try .liveActivity(
            .start(attributesType: "A", attributes: 1), contentState: state, alert: hi)
        }
      ),
      (
        "aps.attributes-type",
        {
          try .liveActivity(
            .start(attributesType: "", attributes: [:]), contentState: state, alert: hi)
        }
      ),
      (
        "aps.input-push-channel",
        {
          try .liveActivity(
            .start(attributesType: "A", attributes: [:], updates: .channel("not base64!")),
            contentState: state, alert: hi)
        }
      ),
      ("aps.alert", { try .liveActivity(.update, contentState: state, sound: .standard) }),
      (
        "aps.alert",
        { try .liveActivity(.update, contentState: state, alert: .init(subtitle: "s")) }
      ),
      (
        "aps.stale-date",
        { try .liveActivity(.update, contentState: state, staleDate: .distantPast) }
      ),
    ]
    for (member, make) in cases {
      let error = #expect(throws: PayloadError.self, "\(member)") { try make() }
      #expect(error?.member == member)
    }
  }
}
