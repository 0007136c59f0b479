import HubCore
import HubTesting
import Testing

@Suite("A list whose reader has left")
struct LeftSearchTests {
  @Test("is not read on")
  func left() async throws {
    let hub = try await TestHub()
    let calls = ["notifications(_:in:hub:after:limit:)", "installations(_:hub:after:limit:)"]
    @Sendable func list() async throws(HubFailure) {
      _ = try await hub.service.notifications.list(
        hub: hub.hub, NotificationFilter(search: "x"), in: .newestFirst, after: nil, limit: 9)
    }
    @Sendable func devices() async throws(HubFailure) {
      _ = try await hub.service.installations.list(
        hub: hub.hub, InstallationFilter(asOf: hub.clock.now), after: nil, limit: 9)
    }
    try await list()
    try await devices()
    #expect(calls.map(hub.hook.count(of:)) == [1, 1])
    for read in [list, devices] {
      let error = await Task {
        withUnsafeCurrentTask { $0?.cancel() }
        do throws(HubFailure) {
          try await read()
          return nil as HubFailure?
        } catch { return error }
      }.value
      #expect(error?.status == 503)
    }
    #expect(calls.map(hub.hook.count(of:)) == [1, 1])
  }
}
