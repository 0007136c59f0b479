import Foundation
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import Synchronization
import Testing

@Suite("Large documents are read in turns")
struct DocumentTurnsTests {
  /// Who was read, in this order.
  private final class Order: Sendable {
    private let names = Mutex<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func add(_ name: String) { names.withLock { $0.append(name) } }
  }

  /// Keeps the threads that read documents from their work until the result is called.
  private func holdThreads(of store: any HubStore) async -> @Sendable () -> Void {
    let count = min(max(ProcessInfo.processInfo.activeProcessorCount / 2, 1), 4)
    let isOver = DispatchSemaphore(value: 0)
    let (begun, begin) = AsyncStream<Void>.makeStream()
    for _ in 0..<count {
      Task {
        try await store.inTurn(bytes: 0) {
          begin.yield()
          isOver.wait()
        }
      }
    }
    var held = 0
    for await _ in begun {
      held += 1
      if held == count { break }
    }
    return { for _ in 0..<count { isOver.signal() } }
  }

  private func installation(_ id: String, size: Int) -> String {
    let tags = (0..<(size / 20)).map { #""tag-\#($0)-0123456789""# }.joined(separator: ",")
    let handle = String(repeating: "ab", count: 32)
    return
      #"{"installationId":"\#(id)","platform":"apns","pushChannel":"\#(handle)","tags":[\#(tags)]}"#
  }

  @Test("and not by who moves bytes, so that a small request goes on beside them")
  func smallOvertakes() async throws {
    let hub = try await TestHub()
    // Reads the directory, so that nothing but the document waits in the store below.
    _ = await hub.send(.get, "/hub1/installations/none?api-version=2020-06")
    let release = await holdThreads(of: hub.store)
    let put = "/hub1/installations/%@?api-version=2020-06"
    let large = Task {
      await hub.send(
        .put, put.replacing("%@", with: "large"), body: installation("large", size: 8_000))
    }
    while await hub.store.statistics().waiting == 0 { await Task.yield() }
    let small = await hub.send(
      .put, put.replacing("%@", with: "small"), body: installation("small", size: 100))
    #expect(small.status == .ok)
    // The large one, which nobody can have read. Maintenance may wait beside it for a moment.
    while await hub.store.statistics().waiting != 1 { await Task.yield() }
    release()
    // The hub lets an installation have fewer tags; it has been read, and what is wrong found.
    #expect([.ok, .badRequest].contains(await large.value.status))
    // Who has left is not read.
    let again = await holdThreads(of: hub.store)
    let leaving = Task {
      await hub.send(
        .put, put.replacing("%@", with: "left"), body: installation("left", size: 8_000))
    }
    while await hub.store.statistics().waiting == 0 { await Task.yield() }
    leaving.cancel()
    #expect(await leaving.value.status == .serviceUnavailable)
    #expect(await hub.store.statistics().dropped == 1)
    again()
  }

  @Test(
    "so that one key's are not behind another's, and what waits for one is bounded",
    arguments: TestedEngine.installed)
  func turns(engine: TestedEngine) async throws {
    var limits = JobLimits()
    limits.caller.bytes = 12_000_000
    let store = try await temporaryStore(on: engine, limits: limits)
    let hub = Hub(id: 1, name: "h", createdAt: .now)
    let order = Order()
    @Sendable func read(by key: String) async throws {
      let caller = Caller(name: key, via: .key, rights: .listen)
      try await Admission.$current.withValue(Admission(hub: hub, caller: caller)) {
        try await store.inTurn(bytes: 40_000) { order.add(key) }
      }
    }
    let release = await holdThreads(of: store)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<300 { group.addTask { try await read(by: "flood") } }
      while await store.statistics().waiting < 300 { await Task.yield() }
      await #expect(throws: StoreError.busy) { try await read(by: "flood") }
      group.addTask { try await read(by: "other") }
      while await store.statistics().waiting < 301 { await Task.yield() }
      release()
      try await group.waitForAll()
    }
    let before = try #require(order.all.firstIndex(of: "other"))
    #expect(before < 20, "\(before) of the flood were read before")
    #expect(await store.statistics().refused == [1: 1])
  }
}
