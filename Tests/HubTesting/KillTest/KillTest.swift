/// Kills a hub again and again while it delivers, and counts afterwards what became of every push,
/// every schedule and every write that it had acknowledged.
///
/// The hub is the real program, started again after each kill, or several of them on one
/// PostgreSQL, of which one at a time is killed while the others go on; the push service is the
/// emulator in this process, with faults switched on. What is done and when follows from the seed;
/// how far the hub has come at a moment does not, so a run is repeated in kind and not to the byte.
package struct KillTest: Sendable {
  package struct Options: Sendable {
    /// Devices of each broadcast.
    package var devices = 100_000
    /// Rounds, each with a broadcast of its own and a kill; some rounds kill twice.
    package var kills = 20
    package var seed: UInt64 = 1
    /// Processes that are one hub; more than one share a PostgreSQL server of the test's own.
    package var nodes = 1
    /// Also with a single node.
    package var usesPostgres = false
    /// The push service answers 503 and 429 now and then in every round, not in the first only.
    /// Such a device is tried again after ten seconds at the soonest.
    package var hasErrorsThroughout = true
    /// Hears what each round did.
    package var log: @Sendable (String) -> Void = { _ in }

    package init() {}
  }

  /// The result of a run.
  package struct Report: Sendable {
    /// Broken promises; empty if all held.
    package var faults: [String] = []
    package var kills = 0
    package var pushes = 0
    /// Pushes beyond the first of the same notification to the same device.
    package var repeats = 0
    /// As many repeats as the pages in flight at the kills, and the requests in flight at the
    /// resets, allow.
    package var repeatLimit = 0
    package var acknowledgedWrites = 0
    package var acknowledgedSends = 0
  }

  let options: Options

  package init(_ options: Options) { self.options = options }

  package func run() async throws -> Report {
    let run = try await KillTestRun(options)
    do {
      let report = try await run.all()
      await run.end()
      return report
    } catch {
      await run.end()
      throw error
    }
  }
}
