import HubCore

extension SimulatedStore {
  /// The only node of a new database in a world, with the world's clocks.
  /// - Parameter seed: Of how long calls travel; `nil` when they take no time.
  package static func alone(in world: World, place: Place, seed: UInt64?) async throws
    -> SimulatedStore
  {
    let clock = MachineClock(world)
    let database = SimulatedDatabase { clock.date }
    nonisolated(unsafe) var draw = Draw(seed ?? 0, UInt64(keyOf: "store"))
    let random: @Sendable () -> UInt64 = { draw.next() }  // owner of `draw`: the world's thread
    let machine = clock.clock(of: place)
    let store: SimulatedStore
    if let seed {
      let network = DatabaseNetwork(world, seed: seed, latency: 100)
      let link = ProcessLink(network, world, place: place, machine: 0, seed: seed)
      store = SimulatedStore(database, link: link, machine: machine, random: random)
    } else {
      store = SimulatedStore(database, link: DirectLink(), machine: machine, random: random)
    }
    // It has no beats.
    try await store.join(lease: 86_400)
    return store
  }
}
