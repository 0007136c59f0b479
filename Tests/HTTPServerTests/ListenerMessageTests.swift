import HTTP2
import HTTPServer
import HubTesting
import Testing

@Suite("HTTP messages over a socket", .timeLimit(.minutes(5)))
struct ListenerMessageTests {
  @Test("a connection serves one request after the other")
  func keepAlive() async throws {
    try await withServer(answer: echo) { server in
      let port = server.port
      let replies = try await onThread {
        let client = try RawClient(port: port)
        return try (1...3).map { try client.exchange("GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n") }
      }
      #expect(replies.map(\.body) == ["GET /1 [] ", "GET /2 [] ", "GET /3 [] "])
      #expect(replies.allSatisfy { $0.status == 200 && $0.headers["date"] != nil })
    }
  }

  @Test("requests sent at once are answered in order, however long each takes")
  func pipelining() async throws {
    let first = Signal()
    try await withServer { request in
      if request.target.description == "/0" { await first.wait() } else { await first.set() }
      return await echo(request)
    } body: { server in
      let port = server.port
      // The second connection's request lets the first one's first request go.
      let bodies = try await onThread {
        let client = try RawClient(port: port)
        let requests = (0..<50).map {
          "PUT /\($0) HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n\($0 % 10)x"
        }
        try client.send(requests.joined())
        _ = try RawClient(port: port).exchange("GET /go HTTP/1.1\r\nHost: h\r\n\r\n")
        return try (0..<50).map { _ in try client.readReply().body }
      }
      #expect(bodies == (0..<50).map { "PUT /\($0) [] \($0 % 10)x" })
    }
  }

  @Test("a chunked body arrives joined, its trailers dropped")
  func chunkedBody() async throws {
    try await withServer(answer: echo) { server in
      let port = server.port
      let reply = try await onThread {
        try RawClient(port: port).exchange(
          "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "5\r\nhello\r\n7;x=y\r\n, world\r\n0\r\nX-Test: trailer\r\n\r\n")
      }
      #expect(reply.body == "POST /c [] hello, world")
    }
  }

  @Test("a client that expects 100 gets it before it sends its body")
  func expectContinue() async throws {
    try await withServer(answer: echo) { server in
      let port = server.port
      let (interim, reply) = try await onThread {
        let client = try RawClient(port: port)
        try client.send(
          "PUT /e HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        let interim = try client.readHead()
        return (interim, try client.exchange("body"))
      }
      #expect(interim.status == 100)
      #expect(reply.body == "PUT /e [] body")
    }
  }

  @Test("HEAD gets the headers of GET and no body")
  func head() async throws {
    try await withServer(answer: echo) { server in
      let port = server.port
      let (head, next) = try await onThread {
        let client = try RawClient(port: port)
        try client.send("HEAD /h HTTP/1.1\r\nHost: h\r\n\r\n")
        return (
          try client.readReply(toHead: true),
          try client.exchange("GET /n HTTP/1.1\r\nHost: h\r\n\r\n")
        )
      }
      #expect(head.headers["content-length"] == "11")
      #expect(next.body == "GET /n [] ")
    }
  }

  @Test("the target arrives as sent: nothing decoded, flags without a value kept")
  func rawTarget() async throws {
    try await withServer { request in
      let target = request.target
      let path = target.pathSegments.map {
        "\(String(decoding: $0.raw, as: UTF8.self))=\($0.decoded ?? "nil")"
      }
      let query = target.queryItems.map { item in
        "\(item.name ?? "?"):\(item.rawValue.map { String(decoding: $0, as: UTF8.self) } ?? "-")"
          + ":\(item.value ?? "nil")"
      }
      return HTTPResponse(.ok, text: (path + query).joined(separator: " "))
    } body: { server in
      let port = server.port
      let reply = try await onThread {
        try RawClient(port: port).exchange(
          "GET /a%2Fb/%24batch/x+y/?%24top=2&q=a+b%2b&direct&e=&&api-version=2015-08 HTTP/1.1\r\n"
            + "Host: h\r\n\r\n")
      }
      #expect(
        reply.body == "a%2Fb=a/b %24batch=$batch x+y=x+y "
          + "$top:2:2 q:a+b%2b:a b+ direct:-:nil e:: api-version:2015-08:2015-08")
    }
  }

  @Test("repeated headers are kept in order and found whatever their case")
  func headers() async throws {
    try await withServer(answer: echo) { server in
      let port = server.port
      let reply = try await onThread {
        try RawClient(port: port).exchange(
          "GET / HTTP/1.1\r\nHost: h\r\nX-Test: one\r\nx-tEST:  two \r\n\r\n")
      }
      #expect(reply.body == "GET / [one+two] ")
    }
  }

  static let emptyBodies: [(HTTPStatus, HTTPBody, String?)] = [
    (.ok, .none, "0"), (.ok, .bytes([]), "0"), (.created, .none, "0"),
    (.noContent, .none, nil), (.noContent, .bytes([]), "0"),
  ]

  @Test("an empty reply says so exactly as asked", arguments: emptyBodies)
  func emptyBody(status: HTTPStatus, body: HTTPBody, length: String?) async throws {
    try await withServer { _ in
      HTTPResponse(status, body: body)
    } body: { server in
      let port = server.port
      let (reply, next) = try await onThread {
        let client = try RawClient(port: port)
        return (
          try client.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
          try client.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        )
      }
      #expect(reply.status == status.rawValue)
      #expect(reply.headers["content-length"] == length)
      #expect(reply.headers["transfer-encoding"] == nil)
      #expect(next.status == status.rawValue)
    }
  }

  @Test("a header value cannot smuggle in another header")
  func headerInjection() async throws {
    try await withServer { _ in
      HTTPResponse(.ok, headers: ["X-Value": "a\r\nX-Other: b\u{0}c"])
    } body: { server in
      let port = server.port
      let reply = try await onThread {
        try RawClient(port: port).exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
      }
      #expect(reply.headers["x-other"] == nil)
      #expect(reply.headers["x-value"] == "a  X-Other: b c")
    }
  }

  @Test("a large body goes through both ways")
  func largeBody() async throws {
    var configuration = HTTPConfiguration()
    configuration.maxBodyBytes = 8 << 20
    configuration.bodyBudget = BodyBudget()  // that of the process is other tests' as well
    try await withServer(configuration) { request in
      HTTPResponse(.ok, body: .bytes(request.body))
    } body: { server in
      let port = server.port
      let text = String(repeating: "0123456789abcdef", count: 300_000)
      let reply = try await onThread {
        try RawClient(port: port).exchange(
          "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
      }
      #expect(reply.body == text)
    }
  }

  @Test("many connections at once each get their own answers")
  func manyConnections() async throws {
    try await withServer(answer: echo) { server in
      let port = server.port
      let good = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<64 {
          group.addTask {
            try await onThread {
              let client = try RawClient(port: port)
              return try (0..<50).filter { round in
                let body = "\(number).\(round)"
                return try client.exchange(
                  "PUT /p HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
                ).body == "PUT /p [] \(body)"
              }.count
            }
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(good == 64 * 50)
    }
  }
}
