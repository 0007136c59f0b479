import Synchronization
import Testing

@testable import HTTPServer

@Suite("Requests that wait for a handler")
struct RequestQueueTests {
  private final class Counter: Sendable {
    let value = Atomic<Int>(0)
  }

  /// Counts those that are kept.
  private final class Owner: RequestOwner {
    let connectionNumber: UInt64
    private let counter: Counter
    private let left = Atomic<Bool>(false)

    init(_ connection: UInt64, _ counter: Counter) {
      connectionNumber = connection
      self.counter = counter
      counter.value.add(1, ordering: .relaxed)
    }

    deinit { counter.value.subtract(1, ordering: .relaxed) }

    var isOver: Bool { left.load(ordering: .relaxed) }
    func leave() { left.store(true, ordering: .relaxed) }
    func answer(_ response: HTTPResponse) {}
    func runs(in task: Task<Void, Never>) {}
  }

  private let kept = Counter()

  /// The queue, for expectations, which take no call that changes a value.
  private final class Line {
    private(set) var queue = RequestQueue()

    func begin(_ request: PendingRequest, limit: Int) -> Bool { queue.begin(request, limit: limit) }
    func next() -> PendingRequest? { queue.next() }
    func remove(_ owner: any RequestOwner) -> PendingRequest? { queue.remove(owner) }
    var count: Int { queue.count }
    var running: Int { queue.running }
    var placeCount: Int { queue.placeCount }
  }

  private func request(_ connection: UInt64) -> PendingRequest {
    PendingRequest(
      owner: Owner(connection, kept),
      request: HTTPRequest(method: .put, target: "/", body: [UInt8](repeating: 0, count: 100)))
  }

  @Test("are not kept once they are served, though some are always waiting")
  func bounded() {
    let queue = Line()
    var most = 0
    #expect(queue.begin(request(0), limit: 1))
    for number in 0..<100_003 {
      #expect(!queue.begin(request(UInt64(number % 5)), limit: 1))
      guard number >= 3 else { continue }
      #expect(queue.next() != nil)
      #expect(queue.count == 3)
      most = max(most, queue.placeCount)
    }
    #expect(most < 500)
    #expect(kept.value.load(ordering: .relaxed) == 3)
    for _ in 0..<3 { #expect(queue.next() != nil) }
    #expect(queue.running == 1)
    #expect(queue.next() == nil)
    #expect(queue.running == 0)
  }

  @Test("start within one round of the connections, whatever one of them has waiting")
  func turns() throws {
    let queue = Line()
    for _ in 0..<1_024 { #expect(queue.begin(request(1), limit: 1_024)) }
    for number in 0..<5_000 { #expect(!queue.begin(request(UInt64(number % 4)), limit: 1_024)) }
    #expect(!queue.begin(request(9), limit: 1_024))
    let order = (0..<5).compactMap { _ in queue.next()?.owner.connectionNumber }
    #expect(order == [0, 1, 2, 3, 9])
    #expect(queue.count == 4_996)
    #expect(queue.running == 1_024)
  }

  @Test("go when their sender goes, and leave no second turn behind")
  func removal() throws {
    let queue = Line()
    #expect(queue.begin(request(0), limit: 1))
    #expect(!queue.begin(request(1), limit: 1))
    for _ in 0..<100_000 {
      let work = request(7)
      #expect(!queue.begin(work, limit: 1))
      #expect(queue.remove(work.owner) != nil)
      #expect(queue.remove(work.owner) == nil)
    }
    #expect(queue.placeCount < 500)
    let (first, second) = (request(7), request(7))
    #expect(!queue.begin(first, limit: 1) && !queue.begin(second, limit: 1))
    #expect(!queue.begin(request(8), limit: 1) && !queue.begin(request(8), limit: 1))
    #expect(queue.remove(first.owner) != nil)
    (second.owner as? Owner)?.leave()
    let order = (0..<3).compactMap { _ in queue.next()?.owner.connectionNumber }
    #expect(order == [1, 8, 8], "who has left is passed over")
    #expect(queue.next() == nil)
    #expect(queue.count == 0)
  }
}
