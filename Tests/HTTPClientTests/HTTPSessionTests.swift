import Cryptography
import HTTPServer
import HubTesting
import Synchronization
import Testing

@testable import HTTPClient

@Suite("HTTP/1.1 client", .timeLimit(.minutes(5)))
struct HTTPSessionTests {
  @Test("a call goes out as it stands and its reply comes back whole")
  func exchange() async throws {
    try await withSecureServer { request in
      var fields: [String] = []
      for (name, value) in request.headers { fields.append("\(name.lowercased())=\(value)") }
      let path = "\(request.method.rawValue) \(request.target)"
      return HTTPResponse(
        HTTPStatus(rawValue: 201), headers: ["X-Seen": path],
        body: .bytes(Array(fields.joined(separator: "\n").utf8) + [0x0A] + request.body))
    } body: { peer in
      let reply = try await peer.session.send(
        HTTPCall(
          url: peer.url("/a/.b;c=%2F"),
          headers: [("X-One", "ä 1"), ("content-type", "text/xml"), ("X-None", "")],
          body: Array("hällo".utf8)))
      #expect(reply.status == 201)
      #expect(reply["x-seen"] == "POST /a/.b;c=%2F")
      #expect(reply["X-Other"] == nil)
      let lines = String(decoding: reply.body, as: UTF8.self).split(separator: "\n").map(
        String.init)
      #expect(
        Set(lines) == [
          "host=localhost:\(peer.listener.port)", "x-one=ä 1", "content-type=text/xml", "x-none=",
          "content-length=6", "hällo",
        ])
    }
  }

  @Test("methods and empty bodies", arguments: ["GET", "HEAD", "POST", "PUT", "DELETE"])
  func methods(method: String) async throws {
    try await withSecureServer { request in
      HTTPResponse(.ok, headers: ["X-Method": request.method.rawValue], body: .bytes([1, 2, 3]))
    } body: { peer in
      let reply = try await peer.session.send(HTTPCall(method: method, url: peer.url("/")))
      #expect(reply["x-method"] == method)
      #expect(reply.body == (method == "HEAD" ? [] : [1, 2, 3]))
    }
  }

  @Test("a lane bounds how many run at once")
  func lanes() async throws {
    let most = Mutex((now: 0, peak: 0))
    try await withSecureServer { request in
      most.withLock {
        $0.now += 1
        $0.peak = max($0.peak, $0.now)
      }
      // Several turns, so that calls that run at once are seen together.
      for _ in 0..<50 { await Task.yield() }
      most.withLock { $0.now -= 1 }
      return HTTPResponse(.ok, body: .bytes(request.body))
    } body: { peer in
      let calls = (0..<200).map { HTTPCall(url: peer.url("/"), body: Array("\($0)".utf8)) }
      let lane = HTTPLane(limit: 5)
      async let other = peer.session.send(Array(calls.prefix(50)), lane: lane)
      let results = await peer.session.send(calls, lane: lane)
      let bodies = try results.map { String(decoding: try $0.get().body, as: UTF8.self) }
      #expect(bodies == (0..<200).map { "\($0)" })
      #expect(await other.count == 50)
      #expect(most.withLock { $0.peak } <= 5)
    }
  }

  @Test("a batch ends where an answer says so, and what was not begun is told")
  func stopping() async throws {
    let asked = Mutex(0)
    try await withSecureServer { _ in
      let count = asked.withLock { asked in
        asked += 1
        return asked
      }
      return HTTPResponse(HTTPStatus(rawValue: count == 3 ? 429 : 200))
    } body: { peer in
      let calls = (0..<10).map { _ in HTTPCall(url: peer.url("/")) }
      let results = await peer.session.send(calls, lane: HTTPLane(limit: 1)) { _, result in
        (try? result.get())?.status == 200
      }
      #expect(results.prefix(3).map { (try? $0.get())?.status } == [200, 200, 429])
      #expect(results.dropFirst(3).allSatisfy { $0.kind == .notSent })
      #expect(asked.withLock { $0 } == 3)
      // The lane goes on with the next batch.
      let next = try await peer.session.send(calls[0], lane: HTTPLane(limit: 1))
      #expect(next.status == 200)
    }
  }

  @Test("a redirect is a reply")
  func redirect() async throws {
    try await withSecureServer { _ in
      HTTPResponse(HTTPStatus(rawValue: 302), headers: ["Location": "https://localhost:1/"])
    } body: { peer in
      let reply = try await peer.session.send(HTTPCall(url: peer.url("/")))
      #expect(reply.status == 302)
    }
  }

  @Test("a body or head over the limit ends the call", arguments: [true, false])
  func tooLarge(inBody: Bool) async throws {
    try await withSecureServer {
      $0.maxReplyBodyBytes = 1000
      $0.maxReplyHeaderBytes = 2000
    } answer: { request in
      let count = request.target.description == "/ok" ? 1000 : 1001
      return inBody
        ? HTTPResponse(.ok, body: .bytes([UInt8](repeating: 65, count: count)))
        : HTTPResponse(
          .ok,
          headers: [
            "X": String(repeating: "a", count: request.target.description == "/ok" ? 9 : 2000)
          ])
    } body: { peer in
      #expect(await peer.answer("/ok").kind == nil)
      #expect(await peer.answer("/").kind == .tooLarge)
    }
  }

  @Test("a peer that does not answer in time ends the call alone")
  func timeout() async throws {
    let (isIn, isOver) = (Gate(), Gate())
    let clock = Seconds()
    try await withSecureServer {
      $0.totalTimeout = .seconds(30)
      $0.monotonicClock = { clock.value.load(ordering: .sequentiallyConsistent) * 1_000_000_000 }
    } answer: { request in
      if request.target.description == "/slow" {
        isIn.open()
        await isOver.wait()
      }
      return HTTPResponse(.ok)
    } body: { peer in
      func advance(_ seconds: UInt64) {
        clock.value.add(seconds, ordering: .sequentiallyConsistent)
        peer.session.core.lookAtClock()
      }
      async let slow = peer.answer("/slow")
      await isIn.wait()
      advance(29)
      #expect(await peer.answer("/").kind == nil)
      advance(2)
      #expect(await slow.kind == .timeout)
      #expect(await peer.answer("/").kind == nil)
      isOver.open()
    }
  }

  @Test("a reply that goes on is handed over piece by piece, until its reader has enough")
  func streamed() async throws {
    let piece = Gate()
    let taken = Mutex<[[UInt8]]>([])
    try await withSecureServer {
      $0.totalTimeout = .milliseconds(1)  // Not for a reply that its caller takes in pieces.
      $0.maxReplyBodyBytes = 3
    } answer: { request in
      guard request.target.description == "/" else { return HTTPResponse(.notFound) }
      return HTTPResponse(
        .ok,
        body: .stream { writer in
          try await writer.write([1, 2])
          await piece.wait()
          while true { try await writer.write([3, 4]) }
        })
    } body: { peer in
      var call = HTTPCall(method: "GET", url: peer.url("/"))
      call.receive = { bytes in
        piece.open()
        return taken.withLock { taken in
          taken.append(bytes)
          return taken.reduce(0) { $0 + $1.count } < 10
        }
      }
      let ended = await peer.session.send([call], lane: HTTPLane(limit: 1))[0]
      #expect(ended.kind == .cancelled)
      #expect(taken.withLock { $0.first } == [1, 2])
      #expect(taken.withLock { $0.joined().count } >= 10)
      call.url = peer.url("/none")
      let refused = try await peer.session.send(call)
      #expect(refused.status == 404)
    }
  }

  @Test("cancelling a task answers what is open, and the session goes on")
  func cancellation() async throws {
    let (isIn, isOver) = (Gate(), Gate())
    try await withSecureServer { request in
      if request.target.description == "/slow" {
        isIn.open()
        await isOver.wait()
      }
      return HTTPResponse(.ok)
    } body: { peer in
      let calls = (0..<3).map { _ in HTTPCall(url: peer.url("/slow")) }
      let task = Task { await peer.session.send(calls, lane: HTTPLane(limit: 1)) }
      await isIn.wait()
      task.cancel()
      #expect(await task.value.map(\.kind) == [.cancelled, .cancelled, .cancelled])
      let early = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return await peer.session.send(calls, lane: HTTPLane(limit: 1))
      }
      #expect(await early.value.map(\.kind) == [.cancelled, .cancelled, .cancelled])
      #expect(await peer.answer("/").kind == nil)
      isOver.open()
    }
  }

  @Test("a closed session answers what is open and takes no more")
  func closing() async throws {
    let (isIn, isOver) = (Gate(), Gate())
    try await withSecureServer { _ in
      isIn.open()
      await isOver.wait()
      return HTTPResponse(.ok)
    } body: { peer in
      let calls = (0..<3).map { _ in HTTPCall(url: peer.url("/")) }
      let task = Task { await peer.session.send(calls, lane: HTTPLane(limit: 2)) }
      await isIn.wait()
      peer.session.close()
      #expect(await task.value.map(\.kind) == [.closed, .closed, .closed])
      #expect(await peer.answer("/").kind == .closed)
      isOver.open()
    }
  }

  @Test("what cannot be sent safely is not sent")
  func badCalls() async throws {
    try await withSecureServer { _ in
      HTTPResponse(.ok)
    } body: { peer in
      let url = peer.url("/")
      for call in [
        HTTPCall(url: ""), HTTPCall(url: "relative"), HTTPCall(url: "ftp://localhost/"),
        HTTPCall(url: "http://localhost:\(peer.listener.port)/"),
        HTTPCall(url: "https://user@localhost/"), HTTPCall(url: url + "\r\nX: y"),
        HTTPCall(url: url, headers: [("X", "a\r\nY: b")]),
        HTTPCall(url: url, headers: [("X:", "")]),
        HTTPCall(url: url, headers: [("", "")]), HTTPCall(method: "PO ST", url: url),
        HTTPCall(url: url, headers: [("X", "a\u{0}b")]),
      ] {
        let result = await peer.session.send([call], lane: HTTPLane(limit: 1))
        #expect(result.map(\.kind) == [.badCall], "\(call)")
      }
    }
  }
}

extension Result where Failure == HTTPFailure {
  /// Why it failed; `nil` for success.
  var kind: HTTPFailure.Kind? {
    guard case .failure(let failure) = self else { return nil }
    return failure.kind
  }
}

/// A clock that a test moves.
private final class Seconds: Sendable {
  let value = Atomic<UInt64>(1)
}
