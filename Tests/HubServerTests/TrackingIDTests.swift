import Foundation
import HTTPServer
import HubServer
import Testing

@Suite("Tracking ids")
struct TrackingIDTests {
  @Test("ids that the server makes are random UUIDs by form, and all different")
  func unique() async throws {
    let hub = try await TestHub()
    var seen: Set<String> = []
    for _ in 0..<500 {
      let reply = await hub.send(.get, "/hub1/installations/i1")
      for name in ["TrackingId", "x-ms-correlation-request-id"] {
        let id = try #require(reply.headers[name])
        #expect(
          id.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/)
            != nil)
        seen.insert(id)
      }
    }
    #expect(seen.count == 1000)
  }
}
