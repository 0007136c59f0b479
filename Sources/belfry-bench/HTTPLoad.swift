import Foundation
import HTTP2
import NotificationHubs

/// The clients of the PUT row: one thread with several connections, each with one request in
/// progress. Runs in a child process.
enum HTTPLoad {
  /// The hidden first word that starts it, followed by port, count, policy, key and options.
  static let word = "http-load"
  /// The number of connections.
  static let width = BenchmarkOption.connections.value ?? 64

  struct Figures: Codable {
    let seconds: Double
    let cpuSeconds: Double
    let failures: Int
    /// The number of replies in each whole second.
    let bySecond: [Int]

    var medianSecond: Int { bySecond.isEmpty ? 0 : bySecond.sorted()[bySecond.count / 2] }
    var slowestSecond: Int { bySecond.min() ?? 0 }
  }

  static func run(_ words: [String]) throws {
    guard words.count >= 4, let port = UInt16(words[0]), let count = Int(words[1]) else {
      throw BenchmarkError("\(word) wants port, count, policy and key")
    }
    let requests = (0..<count).map { number in
      request(number, port: port, policy: words[2], key: words[3])
    }
    try say(true)
    let before = ProcessUsage.current().cpuSeconds
    let start = ContinuousClock.now
    let (failures, bySecond) = try send(requests, port: port)
    try say(
      Figures(
        seconds: (ContinuousClock.now - start) / .seconds(1),
        cpuSeconds: ProcessUsage.current().cpuSeconds - before, failures: failures,
        bySecond: bySecond))
  }

  private static func request(_ number: Int, port: UInt16, policy: String, key: String) -> [UInt8] {
    let token = SharedAccessSignature(
      resource: "http://127.0.0.1/bench", keyName: policy, key: key,
      expiresAt: Date().addingTimeInterval(3600 + Double(number % 1000)))
    let id = UUID().uuidString.lowercased()
    let handle = (UUID().uuidString + UUID().uuidString).filter { $0 != "-" }
    let body = #"""
      {"installationId":"\#(id)","platform":"apns","pushChannel":"\#(handle)","userId":"user\#(number)","tags":["city\#(number % 1000)","news","group\#(number % 10)"],"pushVariables":{"lang":"en"},"templates":{"main":{"body":"{\"aps\":{\"alert\":\"$(message)\",\"badge\":\"#(badge)\"}}","tags":["main"]}}}
      """#
    return Array(
      """
      PUT /bench/installations/\(id)?api-version=2020-06 HTTP/1.1\r
      Host: 127.0.0.1:\(port)\r
      Authorization: \(token.text)\r
      Content-Type: application/json\r
      Content-Length: \(body.utf8.count)\r
      \r
      \(body)
      """.utf8)
  }

  /// - Returns: The number of replies other than 200, and the number of replies in each whole
  ///   second.
  private static func send(
    _ requests: [[UInt8]], port: UInt16
  ) throws -> (failures: Int, bySecond: [Int]) {
    var polls = try (0..<width).map { _ in
      pollfd(fd: try connected(to: port), events: Int16(POLLIN), revents: 0)
    }
    defer { for poll in polls { close(poll.fd) } }
    var next = 0
    var answered = 0
    var failures = 0
    var bySecond: [Int] = []
    var counted = 0
    var secondEnds = ContinuousClock.now + .seconds(1)
    var buffer = [UInt8](repeating: 0, count: 8192)
    func submit(_ descriptor: Int32) throws {
      guard next < requests.count else { return }
      // A request fits into the socket's buffer, so a single write sends all of it.
      guard write(descriptor, requests[next], requests[next].count) == requests[next].count else {
        throw BenchmarkError("the hub does not take requests")
      }
      next += 1
    }
    for poll in polls { try submit(poll.fd) }
    while answered < requests.count {
      guard poll(&polls, nfds_t(width), 10_000) > 0 else {
        throw BenchmarkError("the hub has stopped answering after \(answered) requests")
      }
      for poll in polls where poll.revents != 0 {
        // Replies have no body and arrive in one piece.
        let count = read(poll.fd, &buffer, buffer.count)
        guard count > 12 else { throw BenchmarkError("the hub has closed a connection") }
        answered += 1
        if !buffer[9..<12].elementsEqual("200".utf8) { failures += 1 }
        try submit(poll.fd)
      }
      if ContinuousClock.now >= secondEnds {
        bySecond.append(answered - counted)
        counted = answered
        secondEnds += .seconds(1)
      }
    }
    return (failures, bySecond)
  }

  private static func connected(to port: UInt16) throws -> Int32 {
    let descriptor = socket(AF_INET, streamSocketType, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(descriptor, $0, size) }
    }
    guard descriptor >= 0, result == 0 else { throw BenchmarkError("cannot reach the hub") }
    return descriptor
  }
}
