import HubCore

extension PushGateway {
  /// What the gateway carries while a batch waits for answers that the stand-in does not give; then
  /// it is given up. The test's time limit bounds the wait.
  func loadUnderWay(_ batch: PushBatch) async throws -> GatewayLoad {
    let delivery = Task { _ = await deliver(batch) }
    let load = try await load { $0.streams > 0 }
    delivery.cancel()
    await delivery.value
    _ = try await self.load { $0.streams == 0 }
    return load
  }

  private func load(where condition: (GatewayLoad) -> Bool) async throws -> GatewayLoad {
    while true {
      if let load = await load(), condition(load) { return load }
      // Others want the machine as well.
      try await Task.sleep(for: .milliseconds(1))
    }
  }
}
