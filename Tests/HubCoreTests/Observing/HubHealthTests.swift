import HubCore
import HubTesting
import Testing

@Suite("The health of a hub")
struct HubHealthTests {
  @Test("a machine whose clock is set by more than a minute is told, and the store's is not")
  func clockSet() async throws {
    let world = try await DispatchWorld()
    let machine = ManualClock()
    let health = HubHealth(
      store: world.store, dispatcher: try await world.started(), gateways: nil,
      clock: world.clock.hubClock, machine: machine.hubClock)
    world.clock.step(by: 3_600)
    machine.advance(by: .seconds(3_600))
    machine.step(by: -60)
    #expect(await health.report().warnings == [])
    machine.step(by: -30)
    let warning = try #require(await health.report().warnings.first)
    #expect(warning.code == "clock-set" && warning.text.contains("by -90 s"))
  }
}
