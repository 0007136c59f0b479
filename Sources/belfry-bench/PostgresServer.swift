import Foundation
import SQLDatabase

/// The local PostgreSQL server of a database.
struct PostgresServer: Sendable {
  private let address: String
  /// The server's first process, the parent of all others.
  private let postmaster: Int

  /// - Parameter address: An address for ``PostgresConnection``.
  /// - Throws: ``BenchmarkError`` if it runs elsewhere.
  init(_ address: String) throws {
    self.address = address
    let connection = try PostgresConnection(address: address, component: "hub")
    defer { connection.close() }
    let row = try connection.statement("SELECT pg_backend_pid()")
    guard try row.step(), let own = Self.process(Int(row.integer(0))) else {
      throw BenchmarkError("the PostgreSQL server is to run on this machine, to see its CPU time")
    }
    postmaster = own.parent
  }

  /// The CPU seconds of all its processes, including those that have ended.
  var cpuSeconds: Double {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    let ticks = names.compactMap { Int($0) }.reduce(0.0) { sum, number in
      guard let process = Self.process(number) else { return sum }
      if number == postmaster { return sum + process.ticks + process.endedTicks }
      return process.parent == postmaster ? sum + process.ticks : sum
    }
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// The wait events of its statements, as shares of their time.
  struct Waits: Sendable {
    var locks: Double
    /// The log's disk, latches and buffers.
    var others: Double
  }

  /// Samples every 20 ms until it is cancelled.
  func sampleWaits() -> Task<Waits, any Error> {
    Task.detached {
      let connection = try PostgresConnection(address: address, component: "hub")
      defer { connection.close() }
      var (all, locks, others) = (0.0, 0.0, 0.0)
      while !Task.isCancelled {
        let row = try connection.statement(
          """
          SELECT COUNT(*), COUNT(*) FILTER (WHERE wait_event_type = 'Lock'),
            COUNT(*) FILTER (WHERE wait_event_type NOT IN ('Lock', 'Client'))
          FROM pg_stat_activity WHERE datname = current_database() AND state = 'active'
            AND pid <> pg_backend_pid()
          """)
        if try row.step() {
          all += Double(row.integer(0))
          locks += Double(row.integer(1))
          others += Double(row.integer(2))
        }
        try? await Task.sleep(for: .milliseconds(20))
      }
      return Waits(locks: locks / max(1, all), others: others / max(1, all))
    }
  }

  /// The CPU times of a process on Linux.
  private static func process(_ number: Int) -> (parent: Int, ticks: Double, endedTicks: Double)? {
    let text = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8)
    // After the name, which may contain anything: the state is the first word, the parent's number
    // the second, and the times of the process and its ended children are the 12th to 15th.
    let words = (text ?? "").split(separator: ")").last?.split(separator: " ") ?? []
    guard words.count > 14, let parent = Int(words[1]) else { return nil }
    let times = words[11...14].map { Double($0) ?? 0 }
    return (parent, times[0] + times[1], times[2] + times[3])
  }
}
