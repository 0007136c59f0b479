import Foundation
import HTTP2

/// CPU per push of the HTTP/2 client alone, over TLS on loopback, with one connection, 1000
/// streams, distinct tokens, and the headers of an APNs gateway. The server is a child process, so
/// that this process's CPU time is the client's.
struct TransportRow: BenchmarkRow {
  let name = "transport.cpu_us_per_push"
  let unit = "µs CPU"
  let goal = BenchmarkGoal.atMost(0.7)

  private static let pageSize = 1000
  /// The number of batches in flight, enough that the connection never waits for its caller.
  private static let pagesInFlight = 4

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let pages = isQuick ? 20 : 200
    let sink = try TransportSinkProcess()
    var configuration = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: sink.port)
    configuration.extraAnchorsPEM = sink.authorityPEM
    let connection = HTTP2Connection(configuration)
    try await connection.ready()
    _ = try await Self.push(pages: 4, from: 0, over: connection)  // warm

    let before = ProcessUsage.current()
    let started = ContinuousClock.now
    let accepted = try await Self.push(pages: pages, from: 4, over: connection)
    let elapsed = ContinuousClock.now - started
    let cpu = ProcessUsage.current().cpuSeconds - before.cpuSeconds
    connection.close()
    let sinkSeconds = try sink.stop()

    let pushes = Double(pages * Self.pageSize)
    guard accepted == pages * Self.pageSize else {
      throw BenchmarkError("\(name): only \(accepted) of \(Int(pushes)) pushes were accepted")
    }
    let seconds =
      Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) * 1e-18
    return BenchmarkMeasurement(
      value: (cpu / pushes * 1e6 * 1000).rounded() / 1000,
      notes: [
        "\(Int(pushes)) pushes in \(seconds.shortest) s, \(Int(pushes / seconds)) per second",
        "the server beside it used \((sinkSeconds / pushes * 1e6).shortest) µs CPU per push",
      ])
  }

  /// Sends pages with several in flight; returns the number of pushes with status 200.
  private static func push(
    pages: Int, from first: Int, over connection: HTTP2Connection
  ) async throws -> Int {
    try await withThrowingTaskGroup(of: Int.self) { group in
      var next = 0
      var accepted = 0
      func add() {
        let batch = page(first + next)
        next += 1
        group.addTask {
          let result = await connection.send(batch)
          if let failure = result.replies.lazy.compactMap(\.failure).first {
            throw BenchmarkError("a push failed: \(failure)")
          }
          return result.replies.count { $0.status == 200 }
        }
      }
      while next < min(pagesInFlight, pages) { add() }
      while let count = try await group.next() {
        accepted += count
        if next < pages { add() }
      }
      return accepted
    }
  }

  /// A page of pushes to unique tokens.
  private static func page(_ number: Int) -> HTTP2RequestBatch {
    var batch = HTTP2RequestBatch(authority: "api.push.apple.com")
    batch.reserve(requests: pageSize, bytes: pageSize * 80 + 1024)
    let fields = batch.addFieldSet([
      // As to Apple, whose table keeps it.
      HTTP2Field("authorization", bearer),
      HTTP2Field("apns-topic", "com.example.app"), HTTP2Field("apns-push-type", "alert"),
      HTTP2Field("apns-priority", "10"), HTTP2Field("apns-expiration", "0"),
    ])
    let body = batch.write(#"{"aps":{"alert":"Hello from Postman!"}}"#)
    var seed = UInt64(number) &* 4_000_037
    for _ in 0..<pageSize {
      let path = batch.write { bytes in
        bytes.append(contentsOf: "/3/device/".utf8)
        for _ in 0..<4 { appendHex(next(&seed), to: &bytes) }
      }
      batch.addRequest(path: path, fields: fields, body: body)
    }
    return batch
  }

  /// A token of the length and entropy of an APNs provider token.
  private static let bearer: String = {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var seed: UInt64 = 42
    func part(_ count: Int) -> String {
      String(decoding: (0..<count).map { _ in alphabet[Int(next(&seed) % 64)] }, as: UTF8.self)
    }
    return "bearer \(part(44)).\(part(51)).\(part(86))"
  }()

  /// SplitMix64.
  private static func next(_ seed: inout UInt64) -> UInt64 {
    seed &+= 0x9E37_79B9_7F4A_7C15
    var mixed = seed
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  private static func appendHex(_ word: UInt64, to bytes: inout [UInt8]) {
    for shift in stride(from: 60, through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: word >> UInt64(shift)) & 15
      bytes.append(digit < 10 ? 48 + digit : 87 + digit)
    }
  }
}
