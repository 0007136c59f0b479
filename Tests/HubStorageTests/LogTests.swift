import Foundation
import HubCore
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Synchronization
import Testing

@testable import HubStorage

@Suite("The write-ahead log")
struct LogTests {
  @Test("is copied into the file while writers go on, and stays short")
  func logStaysShort() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      var options = SQLiteHubStore.Options()
      options.logPages = 50
      let store = try await SQLiteHubStore.open(
        at: path, sealing: TestSealing(), options: options)
      let hub = try await makeHub(store)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<8 {
          group.addTask {
            for number in 0..<150 {
              try await store.put(
                SampleDevice("i-\(writer)-\(number)", tags: ["red"]), hub: hub, at: .now)
            }
          }
        }
        try await group.waitForAll()
      }
      // Without copying it would have several pages for each of a hundred transactions and more.
      let attributes = try FileManager.default.attributesOfItem(atPath: path + "-wal")
      let size = try #require((attributes[.size] as? NSNumber)?.intValue)
      #expect(size < 50 * 4_120 * 8)
      let query = AudienceQuery(
        hub: hub, kind: .native(.apns), expression: .tag("red"), asOf: .now)
      #expect(try await store.count(query) == 1_200)
      try await store.close()
      let again = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      #expect(try await again.count(query) == 1_200)
      try await again.close()
    }
  }

  @Test("when it cannot be synced, no caller sees success before it has been rescued")
  func failedSyncIsTold() async throws {
    let sync = CommitSync(health: StoreHealth())
    let disk = Mutex((isBroken: true, syncs: 0, rescues: 0))
    try await sync.start {
      CommitSync.Disk(
        sync: {
          try disk.withLock {
            $0.syncs += 1
            if $0.isBroken { throw StoreError.diskFull }
          }
        },
        recover: {
          try disk.withLock {
            $0.rescues += 1
            if $0.rescues < 2 { throw StoreError.diskFull }
            $0.isBroken = false
          }
        }, note: { _ in })
    }
    #expect(await outcome(of: sync) == nil)
    #expect(disk.withLock { $0.rescues } == 2)
    try sync.check()
    #expect(await outcome(of: sync) == nil)
    #expect(disk.withLock { $0.syncs } == 2)
    await sync.close()
    #expect(await outcome(of: sync) == .closed)
  }

  /// What a caller is told whose write is confirmed.
  private func outcome(of sync: CommitSync) async -> StoreError? {
    await withUnsafeContinuation { continuation in
      let group = CommitSync.Group()
      group.jobs = [Caller(continuation)]
      group.hasWritten = true
      sync.confirm(group)
    }
  }

  private final class Caller: WriteJob, @unchecked Sendable {  // adds a constant only
    private let continuation: UnsafeContinuation<StoreError?, Never>

    init(_ continuation: UnsafeContinuation<StoreError?, Never>) {
      self.continuation = continuation
    }

    override func finish() { continuation.resume(returning: nil) }
    override func fail(_ error: any Error) {
      continuation.resume(returning: error as? StoreError)
    }
  }
}
