import Foundation
import HubCore
import HubSimulation
import StoreContract

/// The contract of a store, kept by the database's model: inside a world, where its calls travel and
/// the order of tasks is drawn, and with a link that takes no time.
enum ContractRun {
  private final class Outcome: @unchecked Sendable {  // owner: the world's thread
    var text: String? = "it has not ended after a day"
  }

  static func run() -> Exit {
    TaskHook.install()
    var broken = 0
    for clause in HubStoreContract.clauses {
      for (way, seed) in [("at once", nil), ("with calls that travel", UInt64(1))] {
        guard let fault = fault(of: clause, seed: seed) else { continue }
        broken += 1
        say("\(way): \(clause.description): \(fault)")
      }
    }
    say("\(HubStoreContract.clauses.count) clauses, each with two links; \(broken) not kept")
    return broken == 0 ? .nothingFound : .found
  }

  private static func fault(of clause: HubStoreContract.Clause, seed: UInt64?) -> String? {
    let world = World(seed: seed ?? 0, order: .uniform)
    let outcome = Outcome()
    return TaskHook.within(world) {
      world.after(0, at: 0) {
        Task {
          do {
            try await clause.check(SimulatedStore.alone(in: world, place: 0, seed: seed))
            outcome.text = nil
          } catch {
            outcome.text = "\(error)"
          }
        }
      }
      do {
        try world.run(until: 86_400)
        let text = outcome.text
        try world.close()
        return text
      } catch {
        return "\(error)"
      }
    }
  }
}
