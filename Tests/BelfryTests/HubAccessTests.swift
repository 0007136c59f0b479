import NotificationHubs
import Testing

@testable import belfry

@Suite("Access of a command to a hub")
struct HubAccessTests {
  /// Answers each request with a status and nothing else, as Azure refuses.
  private struct Refusal: HTTPTransport {
    let status: Int
    func send(_ request: TransportRequest) async throws -> TransportReply {
      TransportReply(status: status)
    }
  }

  private func access(_ status: Int, hub: String = "news") throws -> HubAccess {
    HubAccess(
      connection: try ConnectionString(
        "Endpoint=sb://contoso.example/;SharedAccessKeyName=phones;SharedAccessKey=a2V5"),
      hub: hub, transport: Refusal(status: status))
  }

  private func refusal(
    _ access: HubAccess, _ call: @Sendable (NotificationHubClient) async throws -> Void
  ) async throws -> CommandFailure {
    try #require(
      await #expect(throws: CommandFailure.self) {
        try await access.calling { try await call(access.client) }
      })
  }

  @Test("a refusal without a reason names the right that the call takes")
  func missingRight() async throws {
    let access = try access(403)
    let list = try await refusal(access) { _ = try await $0.registrations().all() }
    #expect(list.description.contains("The policy phones lacks the right Manage"), "\(list)")
    let own = try await refusal(access) {
      _ = try await $0.registrations(channel: .handle("AB")).all()
    }
    #expect(own.description.contains("The policy phones lacks the right Listen"), "\(own)")
    #expect(own.exitCode == .refused)
  }

  @Test("a wrong key is compared with that of its policy")
  func wrongKey() async throws {
    let failure = try await refusal(try access(401)) { _ = try await $0.installation("i") }
    #expect(failure.description.contains("belfry policy show phones"), "\(failure)")
    #expect(failure.description.contains("whether the hub is called news"), "\(failure)")
    let access = try access(401, hub: "")
    let ofNamespace = try await refusal(access) { _ in _ = try await access.namespace.hubs() }
    #expect(
      ofNamespace.description.contains("This takes a key with the right Manage"),
      "\(ofNamespace)")
  }
}
