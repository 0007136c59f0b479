import HubTesting
import Testing

@testable import SecurePushBackend

@Suite("The table of requests in docs/backend.md")
struct BackendPageTests {
  @Test("it has every request of the backend, and no other")
  func requests() async throws {
    let rows = try DocPage("docs/backend.md").section("Every request")
    let told = Set(
      rows.flatMap { DocPage.requests(in: $0[0]) }.map { "\($0.method) \($0.path)" })
    try await BackendWorld.run { world in
      let served = Set(world.backend.requests)
      #expect(served.count == 14)
      #expect(told.subtracting(served).sorted() == [], "nothing that the backend serves")
      #expect(served.subtracting(told).sorted() == [], "not in the table")
    }
  }
}
