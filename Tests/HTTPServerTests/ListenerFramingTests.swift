import Cryptography
import Foundation
import HTTPServer
import HubTesting
import Testing

@Suite("Requests that can be read in two ways", .timeLimit(.minutes(5)))
struct ListenerFramingTests {
  /// Words refusals in its own way; tells a request that it should never have seen.
  struct Handler: HTTPHandler {
    func respond(to request: HTTPRequest) async -> HTTPResponse { await echo(request) }

    func reject(_ status: HTTPStatus, request: HTTPRequest) -> HTTPResponse {
      HTTPResponse(status, text: "own \(status.rawValue) \(request.headers["X-Id"] ?? "-")")
    }
  }

  /// All that comes back until the server closes, over HTTP or HTTPS.
  private func answer(to text: String, secure: Bool) async throws -> String {
    var configuration = HTTPConfiguration()
    configuration.requestReadTimeout = .seconds(2)
    var pem: String?
    if secure {
      let authority = try CertificateAuthority(commonName: "Test")
      let made = try authority.issueForLocalhost()
      configuration.tls = TLSIdentity(
        certificatePEM: made.certificatePEM, privateKeyPEM: try made.privateKeyPEM())
      pem = authority.certificate.pem
    }
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let answer = try await onThread { [pem] in
      let client = try RawClient(port: port, trusting: pem)
      try client.send(text)
      return try client.readToEnd()
    }
    await server.stop()
    return answer
  }

  static let smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"

  static let strangeLines = [
    "GET /a\0b HTTP/1.1\r\nHost: h\r\nX-Id: 7\r\n\r\n",
    "GET /a\0HTTP/1.1\0\0 HTTP/1.1\r\nHost: h\r\nX-Id: 7\r\n\r\n",
    "GET\0 / HTTP/1.1\r\nHost: h\r\nX-Id: 7\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nX-A: a\0b\r\nX-Id: 7\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nX-A: a\0\0X-B: b\r\nX-Id: 7\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nX-A\0: a\r\nX-Id: 7\r\n\r\n",
    "GET / HTTP/1.1\nHost: h\r\nX-Id: 7\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\nX-Id: 7\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: h\r\nX-Id: 7\r\n\n",
    "GET / HTTP/1.1\r\nHost: h\r\nX-Id: 7\n\n",
  ]

  @Test(
    "a NUL in the head, or a line that ends in a lone line feed, is refused and ends the connection",
    arguments: strangeLines)
  func strangeLine(head: String) async throws {
    for secure in [false, true] {
      let answer = try await answer(to: head + Self.smuggled, secure: secure)
      #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"), "\(answer)")
      #expect(!answer.contains("200 OK"))
      #expect(!answer.contains("smuggled"))
    }
  }

  static let chunkedBodies = [
    "2\r\nab\r\n0\r\n\r\n", "2\nab\n0\n\n", "2;x\nab\r\n0\r\n\r\n",
  ]

  @Test(
    "nothing behind a chunked body is read: where the body ends, a proxy may see otherwise",
    arguments: chunkedBodies)
  func behindChunks(body: String) async throws {
    let answer = try await answer(
      to: "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\(body)\(Self.smuggled)",
      secure: false)
    #expect(answer.contains("\r\nConnection: close\r\n"))
    #expect(!answer.contains("smuggled"))
  }

  static let ambiguousHeads = [
    "Host: h\r\nContent-Length: 0\r\nContent-Length: 38",
    "Host: h\r\nContent-Length: 38\r\nContent-Length: 0",
    "Host: h\r\nContent-Length: 0\r\ncontent-length: 0",
    "Host: h\r\nContent-Length: 38\r\nTransfer-Encoding: chunked",
    "Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 38",
    "Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Host: h\r\nTransfer-Encoding: chunked, chunked",
    "Host: h\r\nTransfer-Encoding: chunked \t",
    "Host: h\r\nTransfer-Encoding: identity",
    "Host: h\r\nTransfer-Encoding: gzip, chunked",
    "Host: h\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Host: h\r\nTransfer-Encoding: xchunked",
    "Host: h\r\nTransfer-Encoding:",
    "Host: h\r\nTransfer-Encoding: x\r\nContent-Length: -5",
    "Host: h\r\nContent-Length : 38",
    "Host: h\r\nTransfer-Encoding : chunked",
    "Host: h\r\nX\tY: 1",
    "Host: h\r\nX(Y: 1",
    "Host: h\r\nX-A: 1\rContent-Length: 38",
    "X-A: 1",
    "Host: h\r\nHost: h",
    "Host: h\r\nHost: other",
    "Host: h\r\nContent-Length:\r\n 38",
    "Host: h\r\nContent-Length: 3\r\n 8",
    "Host: h\r\nTransfer-Encoding:\r\n\tchunked\r\nX-A: 1",
    "Host: h\r\nX-A: 1\r\n b",
  ]

  @Test(
    "a head that can be read in two ways is 400 in the handler's words, and nothing after it is read",
    arguments: ambiguousHeads)
  func ambiguous(head: String) async throws {
    for secure in [false, true] {
      let answer = try await answer(
        to: "PUT / HTTP/1.1\r\nX-Id: 7\r\n\(head)\r\n\r\n0\r\n\r\n\(Self.smuggled)", secure: secure)
      #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
      #expect(answer.contains("\r\nConnection: close\r\n"))
      #expect(answer.hasSuffix("\r\n\r\nown 400 7"))
      #expect(answer.components(separatedBy: "HTTP/1.1").count == 2)
    }
  }

  @Test(
    "a length that is no length gets one well-formed reply, over HTTPS perhaps none",
    arguments: [
      ("-5", 400), ("+2", 400), ("abc", 400), ("", 400), ("0x2", 400), ("1 2", 400), ("5, 5", 400),
      ("99999999999999999999999", 413), ("99999999999999999999999 ", 413), ("0 ", 400), ("5 ", 400),
    ])
  func malformedLength(length: String, status: Int) async throws {
    for secure in [false, true] {
      let answer = try await answer(
        to: "PUT / HTTP/1.1\r\nHost: h\r\nX-Id: 7\r\nContent-Length: \(length)\r\n\r\n"
          + Self.smuggled, secure: secure)
      if secure && answer.isEmpty { continue }
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
      #expect(answer.contains("\r\nConnection: close\r\n"))
      #expect(answer.contains("\r\nDate: "))
      #expect(answer.hasSuffix("\r\n\r\nown \(status) 7"))
      #expect(answer.components(separatedBy: "HTTP/1.1").count == 2)
    }
  }

  @Test("among other connections of the same thread, the one that is wrong gets the refusal")
  func rightConnection() async throws {
    var configuration = HTTPConfiguration()
    configuration.threads = 2
    let server = try HTTPListener(configuration, handler: Handler())
    let port = server.port
    let (refusals, others) = try await onThread {
      let starts = [
        "", "GET /x HTT", "GET /x HTTP/1.1\r\nHost: h\r\n", "GET /x HTTP/1.1\r\nX-A: 1",
      ]
      let ends = [
        "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", "P/1.1\r\nHost: h\r\n\r\n", "\r\n",
        "\r\nHost: h\r\n\r\n",
      ]
      let others = try (0..<24).map { _ in try RawClient(port: port) }
      for (index, client) in others.enumerated() { try client.send(starts[index % 4]) }
      let refusals = try (0..<12).map { index in
        try RawClient(port: port).exchange(
          "PUT / HTTP/1.1\r\nHost: h\r\nX-Id: \(index)\r\nContent-Length: -5\r\n\r\n"
        ).body
      }
      return (
        refusals,
        try others.enumerated().map { try $1.exchange(ends[$0 % 4]).body }
      )
    }
    #expect(refusals == (0..<12).map { "own 400 \($0)" })
    #expect(others == [String](repeating: "GET /x [] ", count: 24))
    await server.stop()
  }

  static let unparsableRequests = [
    "a blank in the target": "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
    "a method only": "GET\r\n\r\n",
    "an unknown version": "GET / HTTP/9.9\r\nHost: h\r\n\r\n",
    "a field without a colon": "GET / HTTP/1.1\r\nHost h\r\n\r\n",
    "a chunk without a size":
      "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n",
    "a chunk beyond measure":
      "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n\r\n",
    "a field beyond measure": "GET / HTTP/1.1\r\nHost: h\r\nX: \(long)\r\n\r\n",
    "a target beyond measure": "GET /\(long) HTTP/1.1\r\nHost: h\r\n\r\n",
  ]
  private static let long = String(repeating: "x", count: 100_000)

  @Test(
    "what cannot be parsed at all gets one well-formed reply and an end, or just the end",
    arguments: unparsableRequests.keys.sorted())
  func unparsable(fault: String) async throws {
    let text = try #require(Self.unparsableRequests[fault])
    for secure in [false, true] {
      // What the client still sends after the end may cost it the reply.
      guard let answer = try? await answer(to: text, secure: secure), !answer.isEmpty else {
        continue
      }
      #expect(answer.hasPrefix("HTTP/1.1 "))
      #expect(answer.contains("\r\nConnection: close\r\n"))
      #expect(answer.components(separatedBy: "HTTP/1.1 ").count == 2)
    }
  }

  @Test(
    "what can be read in one way only is served",
    arguments: [
      "HTTP/1.0\r\nX-A: 1\r\n\r\n", "HTTP/1.0\r\n\r\n",
      "HTTP/1.1\r\nhOST:\r\nConnection: close\r\n\r\n",
      "HTTP/1.1\r\nHost: h\r\nX!#$%&'*+-.^_`|~09: 1\r\nConnection: close\r\n\r\n",
      "HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
      "HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    ])
  func sound(rest: String) async throws {
    for secure in [false, true] {
      let answer = try await answer(to: "PUT / \(rest)", secure: secure)
      #expect(answer.split(separator: "\r\n").first?.contains(" 200 ") == true)
    }
  }
}
