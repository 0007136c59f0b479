import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("Ids as parts of a path")
struct PathSegmentTests {
  static let refused = [
    "", ".", "..", "%2e", "%2E%2e", ".%2e", "%252e%252E", "..;", ".;x=y", "..\\a", "a\\..", "a\\b",
    "../..", "a/../b", "..%2f..", "%2e%2e%2f", "a\u{0}b", "a\nb", "\u{7F}",
  ]

  /// Channel ids of APNs are Base64 and may have slashes.
  static let taken = ["a", "a..b", "...", "..a", ".a.", "%2f", "100%", "a;b", "a/b//+=", "ü", "~"]

  @Test("an id that URL layers would change is refused before anything is sent", arguments: refused)
  func refusal(id: String) async throws {
    #expect(!id.isPathSegment)
    let transport = FakeTransport()
    let client = NotificationHubClientTests.client(transport)
    let calls: [@Sendable () async throws -> Void] = [
      { try await client.delete(installation: id) },
      { try await client.delete(registration: id) },
      { try await client.cancel(scheduled: id) },
      { try await client.erase(user: id) },
      { try await client.delete(broadcastChannel: id) },
      { _ = try await client.telemetry(of: id) },
      { _ = try await client.job(id) },
    ]
    for call in calls {
      let error = await NotificationHubClientTests.failure(call)
      #expect(error?.kind == .badRequest)
    }
    var phone = NotificationHubClientTests.phone
    phone.installationID = id
    let installation = phone
    _ = await NotificationHubClientTests.failure { try await client.createOrReplace(installation) }
    #expect(transport.requests.isEmpty)
  }

  @Test("any other id reaches the server as it is", arguments: taken)
  func passage(id: String) async throws {
    let transport = FakeTransport(TransportReply(status: 204))
    try await NotificationHubClientTests.client(transport).delete(installation: id)
    let url = try #require(transport.requests.first?.url.absoluteString)
    #expect(
      url == "https://contoso.example/hub1/installations/\(id.percentEncoded)?api-version=2020-06")
  }

  @Test("no installation or user is called '.' or '..'", arguments: [".", ".."])
  func names(id: String) {
    var phone = NotificationHubClientTests.phone
    phone.installationID = id
    #expect(throws: WireFormatError.self) { try phone.validated() }
    phone.installationID = "i-1"
    phone.userID = id
    #expect(throws: WireFormatError.self) { try phone.validated() }
  }
}
