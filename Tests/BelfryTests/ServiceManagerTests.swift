import Foundation
import HubTesting
import Testing

@testable import belfry

@Suite("The service manager")
struct ServiceManagerTests {
  @Test("is told in the words of sd_notify")
  func words() {
    typealias State = ServiceManager.State
    let clock = Duration.seconds(2) + .microseconds(7)
    #expect(State.ready.text(monotonic: clock) == "READY=1")
    #expect(State.reloading.text(monotonic: clock) == "RELOADING=1\nMONOTONIC_USEC=2000007")
    #expect(State.stopping.text(monotonic: clock) == "STOPPING=1")
    #expect(State.alive.text(monotonic: clock) == "WATCHDOG=1")
    #expect(State.starting(.seconds(60)).text(monotonic: clock) == "EXTEND_TIMEOUT_USEC=60000000")
  }

  @Test("that is not there, or is named in a way that is none, is not told")
  func nobody() {
    let long = "/" + String(repeating: "x", count: 200)
    for name in [nil, "", "/", "relative", "vsock:2:1", long] {
      #expect(ServiceManager(environment: name.map { ["NOTIFY_SOCKET": $0] } ?? [:]) == nil)
    }
  }

  @Test("asks for signs of life from the process that it means only")
  func watchdog() {
    func limit(_ more: [String: String]) -> Duration? {
      let environment = ["NOTIFY_SOCKET": "/run/notify"].merging(more) { $1 }
      return ServiceManager(environment: environment, process: 7)?.watchdog
    }
    #expect(limit([:]) == nil)
    #expect(limit(["WATCHDOG_USEC": "60000000"]) == .seconds(60))
    #expect(limit(["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"]) == .seconds(60))
    #expect(limit(["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"]) == nil)
    #expect(limit(["WATCHDOG_USEC": "0"]) == nil)
    #expect(limit(["WATCHDOG_USEC": "soon"]) == nil)
  }

  @Test("gets each datagram whole, by a path and by an abstract name")
  func datagrams() async throws {
    let scratch = try Scratch()
    var names = [scratch.path + "/notify"]
    #if os(Linux)
      names.append("@belfry-test-\(UUID())")
    #endif
    for name in names {
      let socket = try NotifySocket(name)
      let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": name]))
      manager.tell(.ready)
      manager.tell(.stopping)
      #expect(try await socket.next() == "READY=1")
      #expect(try await socket.next() == "STOPPING=1")
    }
  }

  @Test("hears nothing while what is asked hangs, and goes on when it answers")
  func hanging() async throws {
    let scratch = try Scratch()
    let socket = try NotifySocket(scratch.path + "/notify")
    let manager = try #require(
      ServiceManager(environment: ["NOTIFY_SOCKET": scratch.path + "/notify"]))
    let (answers, answer) = AsyncStream.makeStream(of: Void.self)
    let telling = manager.keepTelling(.alive, every: .milliseconds(1)) {
      for await _ in answers { return }
    }
    manager.tell(.ready)
    #expect(try await socket.next() == "READY=1")
    answer.yield()
    #expect(try await socket.next() == "WATCHDOG=1")
    manager.tell(.stopping)
    #expect(try await socket.next() == "STOPPING=1", "one answer, one sign of life")
    telling.cancel()
    answer.finish()
  }
}

/// A service manager's end of `NOTIFY_SOCKET`.
final class NotifySocket: Sendable {
  private let descriptor: Int32

  init(_ name: String) throws {
    #if canImport(Darwin)
      descriptor = socket(AF_UNIX, SOCK_DGRAM, 0)
    #else
      descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    #endif
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let start = MemoryLayout.size(ofValue: address) - MemoryLayout.size(ofValue: address.sun_path)
    let bytes = Array((name.hasPrefix("@") ? "\0" + name.dropFirst() : name).utf8)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(start + bytes.count))
      }
    }
    guard code == 0 else { throw ProcessFault("\(name): \(String(cString: strerror(errno)))") }
  }

  deinit { close(descriptor) }

  /// The next datagram, waited for with a limit.
  func next() async throws -> String {
    try await onThread { [self] in
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count >= 0 else { throw ProcessFault("no datagram: errno \(errno)") }
      return String(decoding: buffer[..<count], as: UTF8.self)
    }
  }

  /// The next one that is not of a kind.
  func next(skipping kind: String) async throws -> String {
    while true {
      let text = try await next()
      if !text.hasPrefix(kind) { return text }
    }
  }
}
