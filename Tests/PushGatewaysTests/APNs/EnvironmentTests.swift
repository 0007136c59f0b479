import Foundation
import HubCore
import HubTesting
import NotificationHubs
import PushEmulator
import StoreContract
import Testing

@testable import PushGateways

@Suite("APNs tokens of both environments in one hub", .timeLimit(.minutes(5)), .serialized)
struct EnvironmentTests {
  @Test("a token of the sandbox is found there once, and then at once")
  func remembered() async throws {
    try await Engine.run { engine in
      let hub = try await engine.hub("hub", devices: 5, sandboxDevices: 5)
      #expect(try await engine.finished(engine.send(to: hub, text: "1")) == [.success: 10])
      #expect(try await engine.requests() == 15)
      #expect(try await engine.finished(engine.send(to: hub, text: "2")) == [.success: 10])
      #expect(try await engine.requests() == 25)
    }
  }

  @Test("a token that neither environment knows goes, others stay")
  func dead() async throws {
    try await Engine.run { engine in
      let hub = try await engine.hub("hub", devices: 2, sandboxDevices: 2, unknownDevices: 2)
      #expect(
        try await engine.finished(engine.send(to: hub, text: "1")) == [.success: 4, .badChannel: 2])
      #expect(try await engine.finished(engine.send(to: hub, text: "2")) == [.success: 4])
    }
  }

  @Test("a token whose other environment cannot be asked stays")
  func unreachable() async throws {
    try await Engine.run { engine in
      let hub = try await engine.hub(
        "hub", devices: 1, unknownDevices: 1, otherEndpoint: "https://localhost:1")
      let sent = try await engine.send(to: hub, text: "1")
      while try await engine.store.waitingRetries(sent.id, hub: hub.id) != 1 {
        try await Task.sleep(for: .milliseconds(2))
      }
      #expect(try await engine.store.installations(hub: hub.id).count == 2)
    }
  }

  @Test("with none for the other endpoint one environment decides")
  func optedOut() async throws {
    try await Engine.run { engine in
      let hub = try await engine.hub("hub", devices: 1, sandboxDevices: 1, otherEndpoint: "none")
      #expect(
        try await engine.finished(engine.send(to: hub, text: "1")) == [.success: 1, .badChannel: 1])
      #expect(try await engine.requests() == 2)
    }
  }

  @Test("the other environment is Apple's own, what the property says, or none")
  func endpoints() throws {
    func other(_ endpoint: String, _ property: String? = nil) throws -> String? {
      try APNsCredential(
        APNsFixture.tokenCredential(["Endpoint": endpoint, "OtherEndpoint": property]),
        at: .now
      ).otherEndpoint?.authority
    }
    #expect(try other("https://api.push.apple.com") == "api.sandbox.push.apple.com")
    #expect(try other("https://api.sandbox.push.apple.com:2197") == "api.push.apple.com:2197")
    #expect(try other("https://api.push.apple.com", "none") == nil)
    #expect(try other("https://localhost:9443") == nil)
    #expect(try other("https://localhost:9443", "https://localhost:9444") == "localhost:9444")
  }
}
