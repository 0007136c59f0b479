import Foundation
import HubCore
import HubStorage
import HubTesting
import NotificationHubs
import SQLDatabase
import StoreContract
import Synchronization
import Testing

/// The disk is ``FaultyDisk``: at random moments it is noted what was synced and what was only
/// written; of the latter each sector stays or goes by chance.
@Suite("After a power cut")
struct PowerCutTests {
  static let seeds: [UInt64] =
    ProcessInfo.processInfo.environment["BELFRY_SEED"].flatMap { UInt64($0) }.map { [$0] }
    ?? [1, 2, 3]

  @Test(
    "everything that was acknowledged is there, exactly once, and the file is sound",
    arguments: seeds)
  func nothingIsLost(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let operations = 2_500
    let moments = Set((0..<40).map { _ in Int.random(in: 1..<operations, using: &generator) })
    let work = PowerCutWork(seed: seed)
    let disk = try FaultyDisk()
    try await withDirectory { directory in
      disk.cut(at: moments) { work.note() }
      var options = SQLiteHubStore.Options()
      options.fileSystem = disk.name
      // The log is copied into the file, and starts again, many times.
      options.logPages = 60
      let store = try await SQLiteHubStore.open(
        at: directory.path("hub.sqlite"), sealing: TestSealing(), options: options)
      try await work.run(on: store) { disk.operationCount < operations }
      try await store.close()
    }
    #expect(disk.cuts.count == moments.count)
    for cut in disk.cuts {
      for keeping in [0, 0.5, Double.random(in: 0...1, using: &generator)] {
        try await withDirectory { directory in
          try cut.leave(in: directory.url, keeping: keeping, using: &generator)
          try await check(
            directory.path("hub.sqlite"), work, note: cut.note,
            "seed \(seed), \(keeping) of what was not synced kept")
        }
      }
    }
  }

  private func check(
    _ path: String, _ work: PowerCutWork, note: Int, _ comment: Comment
  ) async throws {
    let store = try await SQLiteHubStore.open(at: path, sealing: TestSealing())
    #expect(try await work.faults(of: store, at: note) == [], comment)
    // It goes on from there.
    let hub = try await store.hub(named: "hub1")?.id
    if let hub { try await store.put(SampleDevice("later"), hub: hub, at: .now) }
    try await store.close()
    let connection = try SQLiteConnection(path: path)
    defer { connection.close() }
    let row = try connection.statement("PRAGMA integrity_check")
    #expect(try row.step())
    #expect(row.text(0) == "ok", comment)
  }
}

/// Several writers that do one thing after the other, each with devices and notifications of its
/// own, and what of it had been acknowledged when.
private final class PowerCutWork: Sendable {
  /// What a writer has set out to do: a device with a version (`nil` deletes it), or a notification
  /// with a cursor.
  struct Step: Sendable {
    let name: String
    let value: Int?
    var isDevice: Bool { name.hasPrefix("i") }
  }

  private struct Writer {
    var steps: [Step] = []
    var acknowledged = 0
  }

  private struct State {
    var hub: Hub.ID?
    var writers: [Writer]
    /// For each moment that was noted, how many steps each writer had been acknowledged.
    var notes: [(hub: Hub.ID?, acknowledged: [Int])] = []
  }

  private static let width = 6
  private let seed: UInt64
  private let state = Mutex(
    State(writers: [Writer](repeating: Writer(), count: PowerCutWork.width)))

  init(seed: UInt64) { self.seed = seed }

  func note() -> Int {
    state.withLock { state in
      state.notes.append((state.hub, state.writers.map(\.acknowledged)))
      return state.notes.count - 1
    }
  }

  // MARK: Writing

  func run(on store: SQLiteHubStore, while goesOn: @escaping @Sendable () -> Bool) async throws {
    let hub = try await makeHub(store)
    state.withLock { $0.hub = hub }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<Self.width {
        group.addTask { [self] in
          var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(writer))
          while goesOn() {
            let step = nextStep(writer, &generator)
            state.withLock { $0.writers[writer].steps.append(step) }
            try await perform(step, on: store, hub: hub)
            state.withLock { $0.writers[writer].acknowledged += 1 }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  private func nextStep(_ writer: Int, _ generator: inout SeededGenerator) -> Step {
    let known = state.withLock { Self.values($0.writers[writer].steps) }
    let device = "i-\(writer)-\(Int.random(in: 0..<8, using: &generator))"
    switch Int.random(in: 0..<10, using: &generator) {
    case 0..<5: return Step(name: device, value: (known[device] ?? 0) + 1)
    case 5: return Step(name: device, value: nil)
    case 6:
      return Step(
        name: "n-\(writer)-\(known.count)-\(UInt64.random(in: 0..<1 << 40, using: &generator))",
        value: 0)
    default:
      let sent = known.filter { $0.key.hasPrefix("n") }.sorted { $0.key < $1.key }
      guard let one = sent.randomElement(using: &generator) else {
        return Step(name: "n-\(writer)", value: 0)
      }
      return Step(name: one.key, value: one.value + 1)
    }
  }

  private func perform(_ step: Step, on store: SQLiteHubStore, hub: Hub.ID) async throws {
    let id = NotificationID(rawValue: step.name)
    switch step.value {
    case nil: _ = try await store.deleteInstallation(step.name, hub: hub)
    case let version? where step.isDevice:
      try await store.put(
        SampleDevice(step.name, tags: [Tag(rawValue: "v\(version)"), "all"]), hub: hub, at: .now)
    case 0:
      try await store.accept(
        NotificationRecord(
          id: id, hub: hub, request: NotificationRequest(format: .template, body: [1]),
          state: .enqueued, enqueuedAt: .now))
    case let cursor?:
      var page = Checkpoint(notification: id, hub: hub, at: .now)
      page.cursor = RegistrationID(cursor)
      page.counts = [OutcomeKey(platform: .apns, isTemplate: true, outcome: .success): 1]
      page.retries = [
        Checkpoint.Retry(
          registration: RegistrationID(cursor), platform: .apns, attempts: 1, due: .now)
      ]
      try await store.checkpoint(page)
    }
  }

  /// What is there after some steps.
  private static func values(_ steps: some Sequence<Step>) -> [String: Int] {
    var values: [String: Int] = [:]
    for step in steps { values[step.name] = step.value }
    return values
  }

  // MARK: Checking

  /// What a store has that it should not have, or lacks, given the moment at which it was left. The
  /// step under way at that moment may have been done or not.
  func faults(of store: SQLiteHubStore, at note: Int) async throws -> [String] {
    let (moment, writers) = state.withLock { ($0.notes[note], $0.writers) }
    guard let hub = moment.hub else { return [] }
    var faults: [String] = []
    for (writer, count) in zip(writers, moment.acknowledged) {
      let before = Self.values(writer.steps.prefix(count))
      let after = Self.values(writer.steps.prefix(count + 1))
      for name in Set(before.keys).union(after.keys).union(writer.steps.prefix(count).map(\.name)) {
        let found = try await value(name, in: store, hub: hub)
        if found != before[name] && found != after[name] {
          faults.append("\(name) is \(found ?? -1), not \(before[name] ?? -1)")
        }
      }
    }
    return faults
  }

  private func value(_ name: String, in store: SQLiteHubStore, hub: Hub.ID) async throws -> Int? {
    guard name.hasPrefix("n") else {
      let tags = try await store.installation(name, hub: hub)?.tags
      return tags?.compactMap { Int($0.rawValue.dropFirst()) }.first
    }
    let id = NotificationID(rawValue: name)
    guard let record = try await store.notification(id, hub: hub) else { return nil }
    let retries = try await store.waitingRetries(id, hub: hub)
    // Cursor, counts and retries are of one piece.
    let cursor = Int(record.cursor)
    return record.counts.values.reduce(0, +) == cursor && retries == cursor ? cursor : -2
  }
}
