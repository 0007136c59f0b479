import HubCore
import NotificationHubs

/// Delivers pages of pushes through a gateway, a few at a time like the dispatcher, and returns
/// this process's cost of a push. The push service is a child process.
enum PageLoad {
  static let pageSize = 1000
  private static let pagesInFlight = 4

  static func measure(
    _ gateway: any PushGateway, pages: [PushBatch]
  ) async throws -> BenchmarkMeasurement {
    try await deliver(pages.prefix(4), through: gateway)  // warm
    let before = ProcessUsage.current()
    let started = ContinuousClock.now
    try await deliver(pages[...], through: gateway)
    let elapsed = (ContinuousClock.now - started) / .seconds(1)
    let cpu = ProcessUsage.current().cpuSeconds - before.cpuSeconds
    await gateway.close()
    let pushes = Double(pages.reduce(0) { $0 + $1.requests.count })
    return BenchmarkMeasurement(
      value: (cpu / pushes * 1e6 * 1000).rounded() / 1000,
      notes: ["\(Int(pushes)) pushes in \(elapsed.shortest) s, \(Int(pushes / elapsed)) per second"]
    )
  }

  private static func deliver(
    _ pages: ArraySlice<PushBatch>, through gateway: any PushGateway
  ) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      var rest = pages
      func add() {
        guard let page = rest.popFirst() else { return }
        group.addTask {
          let results = await gateway.deliver(page)
          if let failed = results.first(where: { $0.outcome != .success }) {
            throw BenchmarkError("a push failed: \(failed.reason ?? failed.outcome.name)")
          }
        }
      }
      for _ in 0..<pagesInFlight { add() }
      while try await group.next() != nil { add() }
    }
  }
}
