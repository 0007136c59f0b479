import Cryptography
import HTTPServer
import HubTesting
import Testing

@Suite("HTTPS", .timeLimit(.minutes(5)))
struct ListenerTLSTests {
  let authority: CertificateAuthority

  init() throws { authority = try CertificateAuthority(commonName: "Test") }

  private func identity() throws -> (tls: TLSIdentity, der: [UInt8]) {
    let made = try authority.issueForLocalhost()
    return (
      TLSIdentity(
        certificatePEM: made.certificatePEM, privateKeyPEM: try made.privateKeyPEM()),
      made.certificate.der
    )
  }

  private func configuration(_ identity: TLSIdentity) -> HTTPConfiguration {
    var configuration = HTTPConfiguration()
    configuration.tls = identity
    return configuration
  }

  @Test("requests come and go over TLS: small, large, chunked, one after the other")
  func messages() async throws {
    let pem = authority.certificate.pem
    try await withServer(configuration(identity().tls)) { request in
      await Task.yield()
      return HTTPResponse(.ok, text: "\(request.isSecure) \(request.body.count)")
    } body: { server in
      #expect(server.isSecure)
      let port = server.port
      let large = String(repeating: "x", count: 300_000)
      let bodies = try await onThread {
        let client = try RawClient(port: port, trusting: pem)
        var bodies = [try client.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").body]
        bodies.append(
          try client.exchange("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n" + large)
            .body)
        try client.send(
          "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
        bodies.append("\(try client.readHead().status)")
        bodies.append(try client.exchange("x").body)
        bodies.append(
          try client.exchange(
            "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
          ).body)
        return bodies
      }
      #expect(bodies == ["true 0", "true 300000", "100", "true 1", "true 2"])
    }
  }

  @Test("a large reply arrives whole")
  func largeReply() async throws {
    let pem = authority.certificate.pem
    let text = String(repeating: "0123456789", count: 200_000)
    try await withServer(configuration(identity().tls)) { _ in
      HTTPResponse(.ok, text: text)
    } body: { server in
      let port = server.port
      let body = try await onThread {
        try RawClient(port: port, trusting: pem).exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").body
      }
      #expect(body == text)
    }
  }

  @Test("plain HTTP to a TLS port gets no reply, and harms nobody")
  func plainToTLS() async throws {
    let pem = authority.certificate.pem
    try await withServer(configuration(identity().tls), answer: echo) { server in
      let port = server.port
      let (plain, secure) = try await onThread {
        let plain = try RawClient(port: port)
        try plain.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        let text = try plain.readToEnd()
        let client = try RawClient(port: port, trusting: pem)
        return (text, try client.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status)
      }
      #expect(!plain.contains("HTTP/1.1 200"))
      #expect(secure == 200)
    }
  }

  @Test("a client that never finishes its handshake is cut")
  func silentClient() async throws {
    var configuration = try configuration(identity().tls)
    configuration.idleTimeout = .milliseconds(100)
    try await withServer(configuration, answer: echo) { server in
      let port = server.port
      _ = try await onThread { try RawClient(port: port).readToEnd() }
    }
  }

  @Test(
    "a stream ends when its TLS client leaves, with or without good manners",
    arguments: [true, false])
  func clientLeaves(politely: Bool) async throws {
    let pem = authority.certificate.pem
    let ended = Signal()
    try await withServer(configuration(identity().tls)) { _ in
      HTTPResponse(
        .ok,
        body: .stream { writer in
          try await writer.write("hello")
          do {
            // Nothing comes for a long time; the server has to see by itself that nobody listens.
            try await Task.sleep(for: .seconds(3600))
          } catch {
            await ended.set()
          }
        })
    } body: { server in
      let port = server.port
      try await onThread {
        let client = try RawClient(port: port, trusting: pem)
        try client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = try client.readHead()
        _ = try client.readChunk()
        if politely { client.close() }
      }
      await ended.wait()
    }
  }

  @Test("a new certificate serves new connections; those there are finish with the old one")
  func replacement() async throws {
    let pem = authority.certificate.pem
    let (first, second) = (try identity(), try identity())
    try await withServer(configuration(first.tls), answer: echo) { server in
      let port = server.port
      let old = try await onThread {
        let client = try RawClient(port: port, trusting: pem)
        let reply = try client.exchange("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n")
        return SentClient(client: client, reply: reply)
      }
      #expect(old.client.peerCertificate == first.der)
      #expect(old.reply.headers["connection"] == nil)
      try server.replaceIdentity(second.tls)
      let (late, new) = try await onThread {
        let late = try old.client.exchange("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
        let client = try RawClient(port: port, trusting: pem)
        let new = try client.exchange("GET /3 HTTP/1.1\r\nHost: h\r\n\r\n")
        return (late, SentClient(client: client, reply: new))
      }
      #expect(late.body == "GET /2 [] ")
      #expect(late.headers["connection"] == "close")
      #expect(new.reply.body == "GET /3 [] ")
      #expect(new.client.peerCertificate == second.der)
    }
  }

  @Test("certificates change under load without a failed request")
  func replacementUnderLoad() async throws {
    let pem = authority.certificate.pem
    try await withServer(configuration(identity().tls)) { request in
      await Task.yield()
      return await echo(request)
    } body: { server in
      let port = server.port
      try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<4 {
          group.addTask {
            try await onThread {
              var done = 0
              for _ in 0..<40 {
                let client = try RawClient(port: port, trusting: pem)
                let reply = try client.exchange("GET /x HTTP/1.1\r\nHost: h\r\n\r\n")
                if reply.status == 200 { done += 1 }
              }
              return done
            }
          }
        }
        for _ in 0..<10 {
          try server.replaceIdentity(identity().tls)
          await Task.yield()
        }
        for try await done in group { #expect(done == 40) }
      }
    }
  }

  @Test("a replacement that does not fit leaves the present certificate in place")
  func badReplacement() async throws {
    let pem = authority.certificate.pem
    let (first, second) = (try identity(), try identity())
    let mixed = TLSIdentity(
      certificatePEM: first.tls.certificatePEM, privateKeyPEM: second.tls.privateKeyPEM)
    try await withServer(configuration(first.tls), answer: echo) { server in
      let port = server.port
      for bad in [mixed, TLSIdentity(certificatePEM: "x", privateKeyPEM: "y")] {
        #expect(throws: HTTPListenerError.certificateRefused(host: "127.0.0.1", port: port)) {
          try server.replaceIdentity(bad)
        }
      }
      let certificate = try await onThread {
        let client = try RawClient(port: port, trusting: pem)
        _ = try client.exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        return client.peerCertificate
      }
      #expect(certificate == first.der)
    }
  }

  @Test("a server with a certificate that is none does not start")
  func badStart() throws {
    let configuration = configuration(TLSIdentity(certificatePEM: "", privateKeyPEM: ""))
    #expect {
      _ = try HTTPListener(configuration, handler: ClosureHandler(answer: echo))
    } throws: { error in
      "\(error)".contains("private key")
    }
  }

  @Test("an identity shows nothing of its key")
  func description() throws {
    let identity = try identity().tls
    #expect("\(identity) \(String(reflecting: identity))".contains("KEY") == false)
  }
}

/// A client handed from thread to thread, used by one at a time.
private struct SentClient: @unchecked Sendable {  // each thread ends before the next begins
  let client: RawClient
  let reply: RawReply
}
