import HTTP2
import Testing

@Suite("Connecting", .timeLimit(.minutes(5)))
struct HandshakeTests {
  @Test("a server whose certificate is not trusted is refused, with the reason")
  func untrusted() async throws {
    let harness = try Harness()
    let connection = harness.connect { $0.extraAnchorsPEM = harness.material.otherAuthorityPEM }
    let error = await failure(of: connection)
    #expect(error?.kind == .untrustedPeer)
    #expect(error?.reason.contains("certificate") == true)
    let replies = await connection.send(makeBatch(2))
    #expect(replies.replies.allSatisfy { $0.failure == .connectFailed })
    #expect(replies.connectionError == error)
  }

  @Test("a certificate for another name is refused", arguments: ["example.com", "127.0.0.2"])
  func wrongName(name: String) async throws {
    let connection = try Harness().connect { $0.serverName = name }
    #expect(await failure(of: connection)?.kind == .untrustedPeer)
  }

  @Test("the certificate may be for the name or for the address", arguments: ["localhost", nil])
  func rightName(name: String?) async throws {
    let connection = try Harness().connect { $0.serverName = name }
    #expect(await failure(of: connection) == nil)
  }

  @Test(
    "an address that is not allowed is not connected to", arguments: ["127.0.0.1", "localhost"])
  func refusedAddress(host: String) async throws {
    let harness = try Harness()
    let connection = harness.connect {
      $0.host = host
      $0.allowsAddress = { $0.first != 127 && $0.last != 1 }
    }
    #expect(await failure(of: connection)?.kind == .refusedAddress)
    let replies = await connection.send(makeBatch(1))
    #expect(replies.replies[0].failure == .connectFailed && !replies.replies[0].wasSent)
    let allowed = harness.connect { $0.allowsAddress = { $0 == [127, 0, 0, 1] } }
    #expect(await failure(of: allowed) == nil)
  }

  @Test("a server that does not choose h2 is refused")
  func noALPN() async throws {
    let material = try TestKeys.material.get()
    let server = try RawServer(material.server, speaksH2: false, sending: [])
    var configuration = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: server.port)
    configuration.extraAnchorsPEM = material.authorityPEM
    let error = await failure(of: HTTP2Connection(configuration))
    #expect(error?.kind == .wrongProtocol)
    #expect(
      error?.reason
        == "the server at 127.0.0.1:\(server.port) does not speak HTTP/2 (no h2 in ALPN)")
  }

  @Test(
    "our server refuses a client that does not offer h2 with no_application_protocol",
    arguments: [("http/1.1", Int32(120)), (nil, 120), ("h2", 0)])
  func clientWithoutH2(offer: String?, alert: Int32) async throws {
    let harness = try Harness()
    let client = try #require(RawClient(port: harness.server.port))
    #expect(try client.startTLS(offering: offer, anchors: harness.material.authorityPEM) == alert)
  }

  @Test(
    "a server that does not require ALPN takes a client without it, and refuses other protocols",
    arguments: [("http/1.1", Int32(120)), (nil, 0), ("h2", 0)])
  func clientWithoutALPN(offer: String?, alert: Int32) async throws {
    let harness = try Harness { configuration, _ in configuration.requiresALPN = false }
    let client = try #require(RawClient(port: harness.server.port))
    #expect(try client.startTLS(offering: offer, anchors: harness.material.authorityPEM) == alert)
    guard alert == 0 else { return }
    // DATA outside of a stream, so that the server ends what it has begun.
    client.send(BadPeerTests.preface + [0, 0, 0, 0, 0, 0, 0, 0, 0])
    let answer = try #require(client.readToEnd())
    #expect(answer.dropFirst(3).first == 4, "SETTINGS")
  }

  @Test("the server sees the client's certificate and whether it verifies")
  func clientCertificate() async throws {
    let harness = try Harness { configuration, material in
      configuration.clientAnchorsPEM = material.authorityPEM
    }
    for (identity, isVerified) in [
      (harness.material.client, true), (harness.material.strangeClient, false),
    ] {
      let connection = harness.connect {
        $0.clientCertificatePEM = identity.certificatePEM
        $0.clientKeyPEM = identity.keyPEM
      }
      #expect(await connection.send(makeBatch(1)).replies[0].status == 200)
      let seen = harness.handler.look { $0.connections.last?.peerCertificate }
      #expect(seen?.der == identity.der)
      #expect(seen?.isVerified == isVerified)
    }
    let anonymous = harness.connect()
    #expect(await anonymous.send(makeBatch(1)).replies[0].status == 200)
    #expect(harness.handler.look { $0.connections.last?.peerCertificate } == nil)
  }

  @Test("a refused client certificate is told from other failures, even after the handshake")
  func missingClientCertificate() async throws {
    let harness = try Harness { configuration, _ in configuration.clientCertificates = .required }
    let connection = harness.connect()
    #expect(await failure(of: connection)?.kind == .tlsRejectedCertificate)
    let replies = await connection.send(makeBatch(1))
    #expect(replies.replies[0].failure == .tlsRejectedCertificate)
    #expect(!replies.replies[0].mayHaveBeenProcessed)
  }

  @Test(
    "what the server does on accept decides how connecting fails",
    arguments: [
      (HTTP2AcceptDecision.alert(45), HTTP2ConnectionError.Kind.tlsRejectedCertificate),
      (.alert(42), .tlsRejectedCertificate), (.alert(120), .wrongProtocol), (.alert(80), .tls),
      (.reset, .connect), (.close, .connect), (.stall, .connectTimedOut),
    ])
  func acceptFaults(
    decision: HTTP2AcceptDecision, expected: HTTP2ConnectionError.Kind
  ) async throws {
    let accepted = Signal()
    let harness = try Harness(
      TestHandler(accept: {
        accepted.set()
        return $0 == 1 ? decision : .proceed
      }))
    let (connection, clock) = harness.connectTimed()
    if decision == .stall {
      await accepted.wait()
      clock.advance(by: .seconds(61))
    }
    let error = await failure(of: connection)
    #expect(error?.kind == expected)
    if expected == .wrongProtocol { #expect(error?.reason.contains("no h2 in ALPN") == true) }
    #expect(await failure(of: harness.connect()) == nil)
  }

  @Test("a closed listener refuses connects, open connections stay, and it opens again")
  func listener() async throws {
    let harness = try Harness()
    let early = harness.connect()
    try await early.ready()
    harness.server.stopListening()
    #expect(await failure(of: harness.connect())?.kind == .connect)
    #expect(await early.send(makeBatch(1)).replies[0].status == 200)
    // Closed, the port was anybody's: wait until the one that took it meanwhile has let go.
    await eventually("the port is free again") {
      (try? harness.server.resumeListening()) != nil
    }
    #expect(await failure(of: harness.connect()) == nil)
  }

  @Test("cancelling who waits for readiness leaves the connection alone")
  func cancelledReady() async throws {
    let harness = try Harness(TestHandler(accept: { _ in .stall }))
    let connection = harness.connect()
    let task = Task { await failure(of: connection) }
    task.cancel()
    #expect(await task.value?.kind == .cancelled)
    #expect(connection.status.state == .connecting)
    connection.close()
    #expect(await failure(of: connection)?.kind == .closed)
  }

  @Test("a name without an address and unusable keys are named as such")
  func configurationFailures() async throws {
    let unknown = HTTP2Connection(HTTP2ConnectionConfiguration(host: "nowhere.invalid", port: 443))
    #expect(await failure(of: unknown)?.kind == .lookup)
    var broken = HTTP2ConnectionConfiguration(host: "127.0.0.1", port: 1)
    broken.clientCertificatePEM = Array("no certificate".utf8)
    broken.clientKeyPEM = []
    #expect(await failure(of: HTTP2Connection(broken))?.kind == .configuration)
  }

  @Test("a server on a port in use says so")
  func portInUse() async throws {
    let harness = try Harness()
    let error = #expect(throws: HTTP2ServerError.self) {
      _ = try Harness { configuration, _ in configuration.port = harness.server.port }
    }
    #expect(error?.kind == .address)
    #expect(error?.description.contains(String(harness.server.port)) == true)
  }

  @Test("stopping a server ends its connections and its threads")
  func stop() async throws {
    let harness = try Harness { configuration, _ in configuration.threads = 2 }
    let connections = [harness.connect(), harness.connect(), harness.connect()]
    for connection in connections { try await connection.ready() }
    await harness.server.stop()
    #expect(harness.handler.look { $0.closedConnections } == 3)
    for connection in connections {
      await eventually("the client sees it") { connection.status.state == .closed }
    }
    #expect(await failure(of: harness.connect())?.kind == .connect)
  }
}
