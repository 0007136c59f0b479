import Testing

@testable import HubCore

@Suite("Push ids")
struct PushIDSeedTests {
  private let seed = PushIDSeed(
    NotificationID(rawValue: "cec4b172178f48e9a801f7d2ebbaa471-20181107001833-33331921-12"))

  @Test("the id of a push is the same in every process")
  func idsAreStable() {
    let id = seed.id(for: 42)
    #expect(id.high == 12_312_960_984_664_921_659)
    #expect(id.low == 10_605_627_408_081_171_408)
  }

  @Test("no two registrations of a notification share half an id")
  func idsDiffer() {
    let ids = (0..<100_000).map { seed.id(for: $0) }
    #expect(Set(ids.map(\.high)).count == ids.count)
    #expect(Set(ids.map(\.low)).count == ids.count)
  }

  @Test("two notifications give a registration different ids")
  func notificationsDiffer() {
    let other = PushIDSeed(
      NotificationID(rawValue: "cec4b172178f48e9a801f7d2ebbaa471-20181107001833-33331921-13"))
    #expect(seed.id(for: 42).high != other.id(for: 42).high)
    #expect(seed.id(for: 42).low != other.id(for: 42).low)
  }
}
