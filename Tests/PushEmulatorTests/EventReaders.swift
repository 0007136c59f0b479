import Foundation
import Synchronization
import Wire

@testable import PushEmulator

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif
#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Reads server-sent events over a real connection.
final class EventReader: NSObject, URLSessionDataDelegate {
  struct Event: Sendable {
    let name: String
    let id: String?
    let data: JSONValue
  }

  private enum Item: Sendable {
    case event(Event)
    case comment
    case end
  }

  private struct Input: Sendable {
    var bytes: [UInt8] = []
    var comments = 0
  }

  private let input = Mutex(Input())
  private let continuation: AsyncStream<Item>.Continuation
  private let items: AsyncStream<Item>
  private let task = Mutex<URLSessionDataTask?>(nil)

  init(_ url: String, headers: [String: String]) throws {
    (items, continuation) = AsyncStream.makeStream()
    super.init()
    guard let url = URL(string: url) else { throw Harness.Failure(description: "no URL") }
    var request = URLRequest(url: url)
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    let session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil)
    let task = session.dataTask(with: request)
    self.task.withLock { $0 = task }
    task.resume()
    session.finishTasksAndInvalidate()
  }

  func close() { task.withLock { $0?.cancel() } }

  var comments: Int { input.withLock { $0.comments } }

  /// Waits for the comment that says that the stream is open.
  func untilOpen() async throws {
    while true {
      switch try await item() {
      case .comment: return
      case .event: continue
      case .end: throw Harness.Failure(description: "the stream ended before it was open")
      }
    }
  }

  func untilClosed() async throws {
    while true {
      if case .end = try await item() { return }
    }
  }

  func next() async throws -> Event {
    while true {
      switch try await item() {
      case .event(let event): return event
      case .comment: continue
      case .end: throw Harness.Failure(description: "the stream ended")
      }
    }
  }

  /// The next item; the test's limit of time bounds the wait.
  private func item() async throws -> Item {
    for await item in items { return item }
    guard !Task.isCancelled else { throw Harness.Failure(description: "nothing came") }
    return .end
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    let blocks = input.withLock { input -> [String] in
      input.bytes += data
      var blocks: [String] = []
      while let end = input.bytes.indices.dropLast().first(where: {
        input.bytes[$0] == 0x0A && input.bytes[$0 + 1] == 0x0A
      }) {
        blocks.append(String(decoding: input.bytes[..<end], as: UTF8.self))
        input.bytes.removeSubrange(...(end + 1))
      }
      input.comments += blocks.count { $0.hasPrefix(":") }
      return blocks
    }
    for block in blocks { continuation.yield(Self.item(block)) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
  ) {
    continuation.yield(.end)
    continuation.finish()
  }

  private static func item(_ block: String) -> Item {
    var name = ""
    var id: String?
    var data = ""
    for line in block.split(separator: "\n") {
      if line.hasPrefix("event: ") { name = String(line.dropFirst(7)) }
      if line.hasPrefix("id: ") { id = String(line.dropFirst(4)) }
      if line.hasPrefix("data: ") { data += line.dropFirst(6) }
    }
    guard !name.isEmpty else { return .comment }
    return .event(
      Event(
        name: name, id: id,
        data: (try? JSONValue.read(Array(data.utf8), uniqueNames: true)) ?? .null))
  }
}

/// Opens a stream and never reads it.
final class IdleReader: Sendable {
  private let descriptor: Int32

  init(_ base: String, path: String) throws {
    #if canImport(Glibc)
      // No process that another test starts may inherit it.
      let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    #else
      let type = SOCK_STREAM
    #endif
    descriptor = socket(AF_INET, type, 0)
    var small: Int32 = 4096
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVBUF, &small, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = (UInt16(base.split(separator: ":").last ?? "") ?? 0).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard connected == 0 else { throw Harness.Failure(description: "cannot connect") }
    let request = Array("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
    guard send(descriptor, request, request.count, 0) == request.count else {
      throw Harness.Failure(description: "cannot send")
    }
  }

  func close() {
    #if canImport(Glibc)
      Glibc.close(descriptor)
    #elseif canImport(Musl)
      Musl.close(descriptor)
    #else
      Darwin.close(descriptor)
    #endif
  }
}
