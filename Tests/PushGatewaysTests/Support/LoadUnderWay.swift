import HubCore
import Synchronization

extension PushGateway {
  /// What the gateway carries while a batch waits for its answers; `nil` when the answers came
  /// before anything was to be seen.
  func loadUnderWay(_ batch: PushBatch) async -> GatewayLoad? {
    let flag = Flag()
    let delivery = Task {
      _ = await deliver(batch)
      flag.isSet.store(true, ordering: .relaxed)
    }
    var found: GatewayLoad?
    while found == nil, !flag.isSet.load(ordering: .relaxed) {
      if let load = await load(), load.streams > 0 { found = load }
      await Task.yield()
    }
    await delivery.value
    return found
  }
}

private final class Flag: Sendable {
  let isSet = Atomic<Bool>(false)
}
