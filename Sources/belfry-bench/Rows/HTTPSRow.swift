import Cryptography
import Foundation
import HTTPServer
import NotificationHubs

/// The cost of a request on the hub's HTTPS port over either protocol, with nghttp2's h2load as the
/// client: a token is checked, and a nonexistent installation is looked up. Rounds of the two
/// protocols alternate, and the minimum of each counts.
struct HTTPSRow: BenchmarkRow {
  enum Figure: String {
    case http1 = "http1_cpu_us"
    case http2 = "http2_cpu_us"
    case ratio = "http2_to_http1"
  }

  let figure: Figure
  private static let connections = 16

  var name: String { "https.\(figure.rawValue)" }
  var unit: String { figure == .ratio ? "ratio" : "µs CPU" }
  var goal: BenchmarkGoal { .atMost(figure == .ratio ? 1 : 220) }

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement {
    let tool = try Self.h2load()
    let identity = try CertificateAuthority(commonName: "belfry-bench").issueForLocalhost()
    let hub = try await ListeningHub(
      TLSIdentity(
        certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM()))
    let versions: [Figure] =
      switch figure {
      case .http1, .http2: [figure]
      case .ratio: [.http1, .http2]
      }
    let count = isQuick ? 2000 : 20_000
    var rounds: [Figure: [Double]] = [:]
    var rates: [Figure: [Int]] = [:]
    for version in versions { _ = try Self.load(tool, hub, version, count: 1000) }  // warm
    for _ in 0..<(isQuick ? 1 : 3) {
      for version in versions {
        let start = ContinuousClock.now
        rounds[version, default: []].append(try Self.load(tool, hub, version, count: count))
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        rates[version, default: []].append(Int(Double(count) / seconds))
      }
    }
    try await hub.stop()
    let least = versions.compactMap { rounds[$0]?.min() }
    return BenchmarkMeasurement(
      value: least.count == 2 ? least[1] / least[0] : least[0],
      notes: versions.map { version in
        let cpu = (rounds[version] ?? []).map(\.shortest).joined(separator: ", ")
        let rate = (rates[version] ?? []).map(String.init).joined(separator: ", ")
        return "\(version.rawValue) \(cpu) in rounds of \(count) requests over "
          + "\(Self.connections) connections, \(rate) requests/s"
      })
  }

  private static func h2load() throws -> String {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
    for folder in folders where FileManager.default.isExecutableFile(atPath: "\(folder)/h2load") {
      return "\(folder)/h2load"
    }
    throw BenchmarkSkip(
      "h2load is not installed: it is in Debian's package nghttp2-client and Homebrew's nghttp2")
  }

  /// - Returns: The microseconds of this process's CPU time per request.
  private static func load(
    _ tool: String, _ hub: ListeningHub, _ version: Figure, count: Int
  ) throws -> Double {
    let token = SharedAccessSignature(
      resource: "https://127.0.0.1/bench", keyName: hub.keyName, key: hub.key,
      expiresAt: Date().addingTimeInterval(3600))
    let client = Process()
    client.executableURL = URL(fileURLWithPath: tool)
    client.arguments =
      ["-n", "\(count)", "-c", "\(connections)", "-t", "1"]
      + (version == .http1 ? ["--h1", "-m", "1"] : ["-m", "8"])
      + [
        "-H", "Authorization: \(token.text)",
        "https://127.0.0.1:\(hub.port)/bench/installations/none?api-version=2020-06",
      ]
    let output = Pipe()
    client.standardOutput = output
    client.standardError = output
    let before = ProcessUsage.current().cpuSeconds
    try client.run()
    let text = String(
      decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    client.waitUntilExit()
    guard text.contains("\(count) 4xx") else {
      throw BenchmarkError("not all of h2load's requests were answered 404:\n\(text)")
    }
    return (ProcessUsage.current().cpuSeconds - before) / Double(count) * 1e6
  }
}
