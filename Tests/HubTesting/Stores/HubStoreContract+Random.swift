import HubCore
import NotificationHubs

extension HubStoreContract {
  /// Writes, changes and deletes devices with random tags, and compares what random expressions
  /// choose with what a plain evaluation of each device's tags chooses.
  static func compareRandomExpressions(
    on store: any HubStore, seed: UInt64, devices: Int, rounds: Int
  ) async throws {
    let hub = try await makeHub(store)
    var random = SeededGenerator(seed: seed)
    var present: [String: SampleDevice] = [:]
    for round in 0..<rounds {
      for _ in 0..<(round == 0 ? devices : 5) {
        let id = "i-\(Int.random(in: 0..<devices, using: &random))"
        if round > 0 && Int.random(in: 0..<4, using: &random) == 0 {
          _ = try await store.deleteInstallation(id, hub: hub)
          present[id] = nil
        } else {
          let device = randomDevice(id, &random)
          try await store.put(device, hub: hub, at: now)
          present[id] = device
        }
      }
      let expression = randomExpression(depth: 4, &random)
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: expression, asOf: now)
      var found: [String] = []
      var after: RegistrationID? = 0
      while let start = after {
        let page = try await store.targets(query, after: start, limit: 13)
        found += page.handleTexts
        after = page.next
      }
      let wanted = present.values.filter { isTrue(expression, for: $0.registrations[0].tags) }
        .map(\.installation.pushChannel.handle)
      try expectEqual(
        found.sorted(), wanted.sorted(), "seed \(seed), round \(round): \(expression)")
      try expectEqual(try await store.count(query), wanted.count, "count of \(expression)")
    }
  }

  private static func randomDevice(
    _ id: String, _ random: inout SeededGenerator
  ) -> SampleDevice {
    let tags = words.filter { _ in Bool.random(using: &random) }
    let user = Int.random(in: 0..<3, using: &random)
    return SampleDevice(
      id, user: user == 0 ? nil : "u\(user)",
      tags: tags.map { Tag(rawValue: Bool.random(using: &random) ? $0 : $0.uppercased()) })
  }

  private static let words = ["a", "b", "c", "d", "e"]

  private static func randomExpression(
    depth: Int, _ random: inout SeededGenerator
  ) -> TagExpression {
    switch depth == 0 ? 0 : Int.random(in: 0..<5, using: &random) {
    case 1: return .not(randomExpression(depth: depth - 1, &random))
    case 2, 3:
      return .and(
        randomExpression(depth: depth - 1, &random), randomExpression(depth: depth - 1, &random))
    case 4:
      return .or(
        randomExpression(depth: depth - 1, &random), randomExpression(depth: depth - 1, &random))
    default:
      let all = words + ["unknown", "$UserId:{u1}", "$userid:{U2}", "$InstallationId:{i-7}"]
      return .tag(Tag(rawValue: all[Int.random(in: 0..<all.count, using: &random)]))
    }
  }

  private static func isTrue(_ expression: TagExpression, for tags: [Tag]) -> Bool {
    switch expression {
    case .tag(let tag): tags.contains(tag)
    case .not(let inner): !isTrue(inner, for: tags)
    case .and(let left, let right): isTrue(left, for: tags) && isTrue(right, for: tags)
    case .or(let left, let right): isTrue(left, for: tags) || isTrue(right, for: tags)
    }
  }
}
