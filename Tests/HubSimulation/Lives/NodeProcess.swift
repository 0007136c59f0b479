import Foundation
import HubCore

/// One process of a node, from its start to its end: the hub as the program puts it together, on the
/// model of the database.
package final class NodeProcess: @unchecked Sendable {  // owner: the world's thread
  let place: ProcessID
  let machine: Int
  let clock: MachineClock
  let store: SimulatedStore
  let link: ProcessLink
  let hub: HubAssembly<LifeGateways>
  let limits: DispatchLimits
  private let world: World
  private let log: HubLog
  private(set) var isStarted = false
  /// Killed, or ended.
  private(set) var isDead = false
  /// When something last kept it from running or from reaching its database, in seconds.
  var disturbedAt = 0.0 { didSet { isUndisturbed = false } }
  /// Nothing has done so since it began.
  private(set) var isUndisturbed = true
  /// Since when it has been cut off from its database; `nil` while it is not.
  var cutOffSince: Double?
  /// Since when its database refuses writes; `nil` while it does not.
  var refusedSince: Double?
  /// When it last began, or went on after standing still.
  var wokeAt = 0.0
  /// When it last went on after standing still.
  var sleptUntil = -Double.infinity
  /// When the database took its last heartbeat.
  var heardAt = 0.0
  /// The last report of all that it holds, as text.
  var told = ""
  /// Number of parts that it had at the last look.
  var lastHeld = 0
  private var tasks: [Task<Void, Never>] = []

  /// - Parameter report: Hears what the process would log.
  init(
    _ place: ProcessID, machine: Int, clock: MachineClock, in world: World, plan: Plan,
    database: SimulatedDatabase, network: DatabaseNetwork, services: LifeServices,
    report: @escaping @Sendable (String) -> Void
  ) {
    self.place = place
    self.machine = machine
    self.clock = clock
    self.world = world
    let hubClock = clock.clock(of: place)
    nonisolated(unsafe) var draw = RandomStream(plan.seed, UInt64(keyOf: "process"), UInt64(place))
    let random = HubRandom { draw.next() }  // owner of `draw`: the world's thread
    link = ProcessLink(network, world, place: place, machine: machine, seed: plan.seed)
    store = SimulatedStore(database, link: link, machine: hubClock, random: random.next)
    var limits = DispatchLimits()
    limits.pageSize = plan[.page]
    limits.window = Double(plan[.window])
    limits.claimedParts = plan[.parts]
    if plan[.held] < limits.targets {
      limits.targets = plan[.held]
      limits.laneTargets = max(1, plan[.held] / 4)
      limits.laneBacklog = max(1, plan[.held] / 4)
      limits.retryTargets = max(1, plan[.held] / 2)
      limits.pagesPerNotification = 2
      limits.waitingParts = max(8, plan[.parts])
    }
    limits.keeping = plan[.outcomes] == 1 ? .all : .failures
    self.limits = limits
    log = HubLog(now: hubClock.now) { report($0) }
    hub = HubAssembly(
      store: store, machine: hubClock, random: random, dispatch: limits,
      report: { report($0.description) },
      gateways: { nodes, clock, random in
        services.gateways(of: machine, nodes: nodes, clock: clock, random: random)
      })
  }

  /// Begins, as the program does: joins, and again when the database is not there; then delivers.
  func start() {
    world.after(0.001, at: place) { [self] in
      let clock = clock.clock(of: place)
      tasks.append(
        Task { [self] in
          while !Task.isCancelled {
            do {
              try await store.join()
              break
            } catch {
              guard (try? await clock.sleep(.seconds(1))) != nil else { return }
            }
          }
          guard !isDead, !world.isClosing else { return }
          run(clock)
          try? await hub.dispatcher.start()
          isStarted = true
          let wasUndisturbed = isUndisturbed
          disturbedAt = world.seconds
          isUndisturbed = wasUndisturbed
        })
    }
  }

  private func run(_ clock: HubClock) {
    let (store, hub, log) = (store, hub, log)
    tasks.append(
      Task {
        while !Task.isCancelled {
          do { try await clock.sleep(.seconds(2)) } catch { return }
          try? await store.beat()
        }
      })
    tasks.append(Task { await hub.health.watchWork(log: log) })
    tasks.append(
      Task { await StoreMaintenance(store: store, clock: store.clock).run() })
  }

  /// Ends at once: what it waits for is not heard any more.
  func kill() {
    isDead = true
    link.isDead = true
    world.pause(place)
  }

  /// Ends with notice, as for an upgrade.
  func stop(_ ended: @escaping @Sendable () -> Void) {
    world.after(0, at: place) { [self] in
      Task { [self] in
        hub.health.beginStopping()
        await hub.dispatcher.stop(within: .seconds(10))
        cancel()
        await hub.gateways.close()
        await store.leave()
        isDead = true
        link.isDead = true
        ended()
      }
    }
  }

  func cancel() { for task in tasks { task.cancel() } }

  var isRunning: Bool { isStarted && !isDead && !world.isPaused(place) }
}
