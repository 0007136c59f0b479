import Foundation
import HubCore
import HubSimulation
import StoreContract

let usage = """
  usage: belfry-simulate contract

    contract   checks that the simulator's database keeps the contract of a store
  """

guard CommandLine.arguments.dropFirst() == ["contract"] else {
  FileHandle.standardError.write(Data("\(usage)\n".utf8))
  exit(64)
}

var failures = 0
for clause in HubStoreContract.clauses {
  do {
    try await clause.check(SimulatedStore.alone())
  } catch {
    failures += 1
    print("\(clause.description): \(error)")
  }
}
print("\(HubStoreContract.clauses.count) clauses, \(failures) not kept")
exit(failures == 0 ? 0 : 1)
