import Foundation
import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("The directory of gateways")
struct PushGatewayDirectoryTests {
  private let directory = PushGatewayDirectory(clock: .system, random: .system)

  private func gateway(
    _ credential: PushCredential, hub: Hub.ID
  ) async throws -> APNsGateway? {
    try await directory.gateway(for: credential, hub: hub) as? APNsGateway
  }

  @Test("a credential keeps its gateway until it is replaced or its hub forgotten")
  func lifetime() async throws {
    let hub = Hub.ID(1)
    let credential = APNsFixture.tokenCredential()
    let first = try #require(try await gateway(credential, hub: hub))
    #expect(try await gateway(credential, hub: hub) === first)
    let replaced = APNsFixture.tokenCredential(["AppName": "com.example.other"])
    let second = try #require(try await gateway(replaced, hub: hub))
    #expect(second !== first)
    directory.forget(hub: hub)
    #expect(try await gateway(replaced, hub: hub) !== second)
    await directory.close()
  }

  @Test("a bad credential is an error each time and leaves the gateway before it in place")
  func badCredential() async throws {
    let hub = Hub.ID(1)
    let credential = APNsFixture.tokenCredential()
    let first = try await gateway(credential, hub: hub)
    for _ in 0..<2 {
      await #expect(throws: CredentialError.self) {
        try await gateway(APNsFixture.tokenCredential(["KeyId": "x"]), hub: hub)
      }
    }
    #expect(try await gateway(credential, hub: hub) === first)
  }

  @Test("every platform has a gateway, or says what a credential lacks")
  func platforms() async throws {
    for platform in PushPlatform.allCases {
      let credential = PushCredential(
        platform: platform, properties: [:], modifiedAt: .distantPast)
      do {
        #expect(try await directory.gateway(for: credential, hub: Hub.ID(1)) != nil)
      } catch {
        #expect(error is CredentialError)
      }
    }
  }
}
