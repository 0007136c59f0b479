import NotificationHubs
import Testing

@testable import HubCore

@Suite("Push ids")
struct PushIDSeedTests {
  private let seed = PushIDSeed(
    NotificationID(rawValue: "cec4b172178f48e9a801f7d2ebbaa471-20181107001833-33331921-12"))

  private func id(
    _ handle: String, _ platform: PushPlatform = .apns, template: UInt64 = 0,
    seed: PushIDSeed? = nil
  ) -> PushID {
    (seed ?? self.seed).id(for: handle.utf8, platform: platform, template: template)
  }

  @Test("the id of a push is the same in every process")
  func idsAreStable() {
    #expect(
      id("AA11BB22CC33") == PushID(high: 3_722_105_389_192_976_551, low: 18_198_301_292_999_781_380)
    )
    #expect(PushIDSeed.number(of: PushTemplate(body: "{}")) == 13_901_847_968_995_233_260)
  }

  @Test("no two handles of a notification share half an id, however alike they are")
  func idsDiffer() {
    let handles =
      (0..<50_000).map { "\($0)" } + (0..<20).map { String(repeating: "0", count: $0 + 30) }
      + (1..<20).map { String(repeating: "\0", count: $0) } + ["", "A", "A\0", "\0A"]
    let ids = handles.map { id($0) }
    #expect(Set(ids.map(\.high)).count == ids.count)
    #expect(Set(ids.map(\.low)).count == ids.count)
  }

  @Test("another notification, platform or template gives another id")
  func partsDiffer() {
    let other = PushIDSeed(
      NotificationID(rawValue: "cec4b172178f48e9a801f7d2ebbaa471-20181107001833-33331921-13"))
    let first = PushTemplate(body: "{}", headers: ["a": "b"])
    let second = PushTemplate(body: "{}", headers: ["a": "c"])
    let ids = [
      id("AA"), id("AA", seed: other), id("AA", .fcmv1),
      id("AA", template: PushIDSeed.number(of: first)),
      id("AA", template: PushIDSeed.number(of: second)),
    ]
    #expect(Set(ids.map(\.high)).count == ids.count)
    #expect(Set(ids.map(\.low)).count == ids.count)
  }

  @Test("a browser that renews its keys keeps the id")
  func subscription() {
    #expect(
      id("https://push.example/a\nkey\nsecret", .browser) == id("https://push.example/a", .browser))
  }
}
