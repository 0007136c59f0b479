/// A hub on a store: gateways, dispatcher, service and health with their clocks and the count of
/// nodes, as the program and the simulator run it.
package struct HubAssembly<Gateways: GatewayDirectory>: Sendable {
  package let gateways: Gateways
  package let dispatcher: Dispatcher
  package let service: HubService
  package let health: HubHealth

  /// - Parameters:
  ///   - machine: The clock of the machine, from which `store.clock` may differ.
  ///   - report: See ``Dispatcher``.
  ///   - found: Findings for an operator from the start.
  ///   - looking: See ``HubHealth``.
  ///   - gateways: Makes the gateways. Tokens are judged by the push service's time, so their clock
  ///     is the store's where the machine's does not contradict it; rates are divided among the
  ///     nodes.
  package init(
    store: any HubStore, machine: HubClock, random: HubRandom,
    limits: HubLimits = .extended, dispatch: DispatchLimits = DispatchLimits(),
    migratesGCM: Bool = false,
    report: @escaping @Sendable (DispatchEvent) -> Void = { _ in },
    found: [HealthReport.Finding] = [],
    looking: @escaping @Sendable () async -> [HealthReport.Finding] = { [] },
    gateways: (_ nodes: NodeCount, _ clock: HubClock, _ random: HubRandom) throws -> Gateways
  ) rethrows {
    let (clock, nodes) = (store.clock, NodeCount())
    self.gateways = try gateways(nodes, clock.agreeing(with: machine), random)
    dispatcher = Dispatcher(
      store: store, gateways: self.gateways, clock: clock, random: random, limits: dispatch,
      migratesGCM: migratesGCM, nodes: nodes, report: report)
    service = HubService(
      store: store, directory: HubDirectory(store: store, clock: clock), dispatcher: dispatcher,
      clock: clock, random: random, limits: limits, gateways: self.gateways)
    health = HubHealth(
      store: store, dispatcher: dispatcher, gateways: self.gateways, clock: clock,
      machine: machine, found: found, looking: looking)
  }
}
