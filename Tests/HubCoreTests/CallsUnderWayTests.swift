import Foundation
import HubTesting
import NotificationHubs
import Testing

@testable import HubCore

@Suite("Requests under way")
struct CallsUnderWayTests {
  private func admission(_ hub: Hub.ID, _ caller: String) -> Admission {
    Admission(
      hub: Hub(id: hub, name: "hub\(hub)", createdAt: .distantPast),
      caller: Caller(name: caller, via: .key, rights: .listen))
  }

  /// How many of `count` are let in while those before are still at work.
  private func hold(
    _ count: Int, _ admission: Admission, in calls: CallsUnderWay, _ group: inout TaskGroup<Void>
  ) async -> Int {
    var taken = 0
    for _ in 0..<count {
      let (told, tell) = AsyncStream<Bool>.makeStream()
      group.addTask {
        do {
          try await calls.counting(admission) {
            tell.yield(true)
            try await Task.sleep(for: .seconds(600))
          }
        } catch let failure as HubFailure {
          #expect(failure.status == 429 && failure.retryAfter == 1)
          tell.yield(false)
        } catch {}
      }
      for await isIn in told {
        taken += isIn ? 1 : 0
        break
      }
    }
    return taken
  }

  @Test("have their admission as the current one, by which the store gives turns")
  func current() async throws {
    try await CallsUnderWay().counting(admission(1, "app")) {
      #expect(Admission.current?.caller.name == "app")
    }
    #expect(Admission.current == nil)
  }

  @Test("of one key, of one hub and of all are bounded, and a caller with few is never refused")
  func bounds() async throws {
    var bounds = CallsUnderWay.Bounds()
    (bounds.caller, bounds.hub, bounds.all, bounds.reserved) = (50, 75, 96, 3)
    let calls = CallsUnderWay(bounds)
    await withTaskGroup(of: Void.self) { group in
      #expect(await hold(60, admission(1, "app"), in: calls, &group) == 50)
      #expect(await hold(60, admission(1, "backend"), in: calls, &group) == 25)
      #expect(await hold(10, admission(1, "late"), in: calls, &group) == 3)
      #expect(await hold(60, admission(2, "app"), in: calls, &group) == 18, "of all")
      #expect(await hold(10, admission(3, "app"), in: calls, &group) == 3)
      #expect(calls.refused == [1: 52, 2: 42, 3: 7])
      group.cancelAll()
    }
    // What has ended, or failed, counts no more.
    for _ in 0..<200 {
      await #expect(throws: CancellationError.self) {
        try await calls.counting(admission(1, "app")) { throw CancellationError() }
      }
    }
    #expect(calls.refused == [1: 52, 2: 42, 3: 7])
  }
}
