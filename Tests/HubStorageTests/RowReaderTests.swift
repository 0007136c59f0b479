import Foundation
import HubCore
import HubTesting
import NotificationHubs
import StoreContract
import Testing

@testable import HubStorage

@Suite("Reads of single rows on the caller's thread")
struct RowReaderTests {
  @Test("a device is found while every reading thread is busy")
  func busyThreads() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: .now)
      let threads = BlockedReaders(of: store)
      await threads.began()
      #expect(try await store.installation("i-1", hub: hub) != nil)
      #expect(try await store.installation("i-2", hub: hub) == nil)
      try await threads.release()
    }
  }

  @Test("nobody waits long for a connection in use: the read goes to the reading threads")
  func connectionsInUse() async throws {
    try await withTemporaryStore { store in
      let rows = store.engine.rows
      // Of two reading threads there is one such connection.
      let isLeftToThreads = try rows.read { _ in try rows.read { _ in true } == nil }
      #expect(isLeftToThreads == true)
    }
  }

  @Test("a large document is decoded on a reading thread, and is the same")
  func largeDocument() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      var large = SampleDevice("large").installation
      for number in 0..<40 {
        large.pushVariables["text\(number)"] = String(repeating: "x", count: 500)
      }
      try await store.putInstallation(large, registrations: [], request: nil, hub: hub, at: .now)
      try await store.put(SampleDevice("small"), hub: hub, at: .now)
      #expect(try store.engine.rows.read { try $0.installation("small", hub: hub) } != nil)
      #expect(try store.engine.rows.read { try $0.installation("large", hub: hub) } == nil)
      let found = try await store.installation("large", hub: hub)
      #expect(found?.pushVariables == large.pushVariables)
    }
  }

  @Test("so are many large templates, whose document is small")
  func largeTemplates() async throws {
    try await withTemporaryStore { store in
      let hub = try await makeHub(store)
      var templates: [String: PushTemplate] = [:]
      for number in 0..<10 {
        templates["t\(number)"] = PushTemplate(
          body: #"{"aps":{"alert":"\#(number)\#(String(repeating: "x", count: 3000))"}}"#)
      }
      try await store.put(SampleDevice("i-1", templates: templates), hub: hub, at: .now)
      #expect(try store.engine.rows.read { try $0.installation("i-1", hub: hub) } == nil)
      #expect(try await store.installation("i-1", hub: hub)?.templates == templates)
    }
  }

  @Test("after another process has written, the keys are read again on a reading thread")
  func otherProcess() async throws {
    try await withDirectory { directory in
      let path = directory.path("hub.sqlite")
      let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      let hub = try await makeHub(store)
      try await store.put(SampleDevice("i-1"), hub: hub, at: .now)
      #expect(try store.engine.rows.read { try $0.installation("i-1", hub: hub) } != nil)
      let other = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
      try await other.put(SampleDevice("i-2"), hub: hub, at: .now)
      #expect(try store.engine.rows.read { try $0.installation("i-2", hub: hub) } == nil)
      #expect(try await store.installation("i-2", hub: hub) != nil)
      #expect(try store.engine.rows.read { try $0.installation("i-2", hub: hub) } != nil)
      try await other.close()
      try await store.close()
    }
  }

  @Test("a closed store answers no more")
  func closed() async throws {
    try await withDirectory { directory in
      let store = try await SQLiteHubStore.open(
        at: directory.path("hub.sqlite"), sealing: TestSealing())
      let hub = try await makeHub(store)
      try await store.close()
      await #expect(throws: StoreError.closed) { try await store.installation("i-1", hub: hub) }
    }
  }
}

/// Keeps every reading thread of a store busy.
private final class BlockedReaders: Sendable {
  private let gate = DispatchSemaphore(value: 0)
  private let work: [Task<Void, any Error>]
  private let begun: AsyncStream<Void>

  init(of store: SQLiteHubStore) {
    let (begun, report) = AsyncStream.makeStream(of: Void.self)
    self.begun = begun
    work = (0..<SQLiteHubStore.Options().readers).map { [gate] _ in
      Task {
        try await store.read("block") { _ in
          report.yield()
          gate.wait()
        }
      }
    }
  }

  /// Waits until all of them are.
  func began() async {
    for await _ in begun.prefix(work.count) {}
  }

  func release() async throws {
    for _ in work { gate.signal() }
    for one in work { try await one.value }
  }
}
