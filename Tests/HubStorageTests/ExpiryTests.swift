import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import Testing

@testable import HubStorage

@Suite("What is over leaves the database")
struct ExpiryTests {
  static let now = Date(timeIntervalSince1970: 1_893_456_000)

  private func rows(_ table: String, _ store: SQLiteHubStore) async throws -> Int64 {
    try await store.read { session in
      let row = try session.connection.statement("SELECT COUNT(*) FROM \(table)")
      return try row.step() ? row.integer(0) : 0
    }
  }

  private func makeHub(_ name: String, _ store: SQLiteHubStore) async throws -> Hub.ID {
    try await store.createHub(named: name, registrationTTL: nil, policies: [], at: Self.now).id
  }

  @Test("every write with an end takes some of it along, and nothing else")
  func sweeps() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub("hub1", store)
      let other = try await makeHub("other", store)
      var draft = RegistrationDraft(
        kind: .native, platform: .apns, channel: .handle("AA"), tags: ["red"])
      draft.expiresAt = Self.now.addingTimeInterval(10)
      for hub in [hub, other] {
        for _ in 0..<6 {
          _ = try await store.createRegistration(draft, hub: hub, at: Self.now)
        }
      }
      var device = SampleDevice("old", templates: ["main": PushTemplate(body: "{}")])
      device.installation.expirationTime = draft.expiresAt
      device.expiresAt = draft.expiresAt
      try await store.put(device, hub: hub, at: Self.now)
      try await store.put(SampleDevice("for ever"), hub: hub, at: Self.now)
      #expect(try await rows("registration", store) == 15)

      let later = Self.now.addingTimeInterval(10)
      draft.expiresAt = later.addingTimeInterval(10)
      for _ in 0..<3 { _ = try await store.createRegistration(draft, hub: hub, at: later) }
      // Those three, the device that stays, and the six of the other hub.
      #expect(try await rows("registration", store) == 10)
      #expect(try await rows("installation", store) == 1)
      #expect(
        try await rows(
          "registration_tag WHERE registration NOT IN (SELECT id FROM registration)",
          store) == 0)
      #expect(try await store.installation("for ever", hub: hub) != nil)
    }
  }
}
