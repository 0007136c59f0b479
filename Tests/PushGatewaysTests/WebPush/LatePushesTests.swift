import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Late pushes", .timeLimit(.minutes(1)))
struct LatePushesTests {
  /// A server that answers when told to.
  private struct Server {
    let answers = AsyncStream<Void>.makeStream()

    func answer(_ count: Int) async -> [PushResult] {
      for await _ in answers.stream {}
      return Array(repeating: .success, count: count)
    }
  }

  private static let origin = Origin(host: "push.example.org", port: 443)
  private static func id(_ low: UInt64) -> PushID { PushID(high: 1, low: low) }

  @Test("a push beyond what may be under way is told as not sent, and sent once there is room")
  func limit() async {
    let late = LatePushes(clock: ManualClock().hubClock)
    let server = Server()
    let send: @Sendable ([Int]) async -> [PushResult] = { await server.answer($0.count) }
    await withTaskGroup(of: [PushResult].self) { group in
      // Waits for the server, because it is the first.
      group.addTask { await late.deliver([Self.id(0)], to: Self.origin, send: send) }
      while late.batches(to: Self.origin) == 0 { await Task.yield() }
      for number in 1...3 as ClosedRange<UInt64> {
        let results = await late.deliver([Self.id(number)], to: Self.origin, send: send)
        #expect(results.map(\.reason) == ["no answer yet"])
      }
      for _ in 0..<2 {
        let fifth = await late.deliver([Self.id(4), Self.id(1)], to: Self.origin, send: send)
        #expect(
          fifth.map(\.reason) == [
            "not sent: earlier pushes to chosen servers have no answer", "no answer yet",
          ])
        #expect(fifth.allSatisfy { $0.retry == .backoff && !$0.concernsOthers })
      }
      server.answers.continuation.finish()
      #expect(await group.next()?.map(\.outcome) == [.success])
    }
    while late.batches(to: Self.origin) > 0 { await Task.yield() }
    let results = await late.deliver([Self.id(4), Self.id(1)], to: Self.origin, send: send)
    #expect(results.map(\.outcome) == [.success, .success])
  }
}
