import HubCore

extension SimulatedStore {
  /// The only node of a new database in a world, with the world's clocks.
  /// - Parameter seed: Of how long calls travel; `nil` when they take no time.
  package static func alone(in world: World, place: ProcessID, seed: UInt64?) async throws
    -> SimulatedStore
  {
    let clock = MachineClock(world)
    nonisolated(unsafe) var draw = RandomStream(seed ?? 0, UInt64(keyOf: "store"))
    var link: any DatabaseLink = DirectLink()
    if let seed {
      let network = DatabaseNetwork(world, seed: seed, latency: 100)
      link = ProcessLink(network, world, place: place, machine: 0, seed: seed)
    }
    return try await alone(
      link: link, machine: clock.clock(of: place), now: { clock.date },
      random: { draw.next() })  // owner of `draw`: the world's thread
  }
}
