import Cryptography
import Foundation
import HTTP2
import Testing
import Wire

@testable import PushEmulator

/// docs/protocol/emulator.md, section 4.1 and section 9, checks 3 to 5: what APNs remembers of a
/// connection.
@Suite(.timeLimit(.minutes(5))) struct ConnectionTests {
  @Test("a token of 3600 s is accepted, one of 3601 s is expired")
  func tokenAge() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let jwt = try Harness.token(app)
      let client = try harness.connect()
      #expect(try await client.push(to: device.token, app, jwt: jwt).status == 200)
      try await harness.advance(seconds: 3600)
      #expect(try await client.push(to: device.token, app, jwt: jwt).status == 200)
      try await harness.advance(seconds: 1)
      let late = try await client.push(to: device.token, app, jwt: jwt)
      #expect(late.status == 403)
      #expect(late.reason == "ExpiredProviderToken")
    }
  }

  @Test("the window of token changes is each connection's own")
  func tokenChanges() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let first = try Harness.token(app)
      let second = try Harness.token(app)
      #expect(first != second)
      let one = try harness.connect()
      let two = try harness.connect()
      func push(_ client: Client, _ jwt: String) async throws -> String {
        let reply = try await client.push(to: device.token, app, jwt: jwt)
        return reply.reason ?? String(reply.status)
      }
      #expect(try await push(one, first) == "200")
      #expect(try await push(one, second) == "TooManyProviderTokenUpdates")
      // From then on every request of that connection, until the window has passed.
      #expect(try await push(one, first) == "TooManyProviderTokenUpdates")
      #expect(try await push(two, second) == "200")
      try await harness.advance(seconds: 20 * 60 - 1)
      #expect(try await push(one, first) == "TooManyProviderTokenUpdates")
      try await harness.advance(seconds: 1)
      #expect(try await push(one, second) == "200")
      #expect(try await push(one, first) == "TooManyProviderTokenUpdates")
    }
  }

  @Test("a bad token does not lift the limit of one stream, a good one does")
  func streamLimit() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let client = try harness.connect()
      let bad = try await client.push(to: device.token, app, jwt: "a.b.c")
      #expect(bad.reason == "InvalidProviderToken")
      #expect(client.connection.status.peerStreamLimit == 1)
      let jwt = try Harness.token(app)
      #expect(try await client.push(to: device.token, app, jwt: jwt).status == 200)
      // The SETTINGS travel after the answer: another exchange has them behind it.
      #expect(try await client.push(to: device.token, app, jwt: jwt).status == 200)
      #expect(client.connection.status.peerStreamLimit == 1000)
    }
  }

  @Test("1000 parallel streams are served and none is refused")
  func manyStreams() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let devices = try harness.server.makeDevices(app: app, count: 3000)
      let jwt = try Harness.token(app)
      let client = try harness.connect()
      #expect(try await client.push(to: devices[0].token, app, jwt: jwt).status == 200)
      let headers = [
        ("authorization", "bearer " + jwt), ("apns-topic", app.bundleID),
        ("apns-push-type", "alert"),
      ]
      let replies = await client.push(paths: devices.map { "/3/device/" + $0.token }, headers)
      #expect(replies.allSatisfy { $0.status == 200 && $0.failure == nil })
      let stats = try await harness.control("GET", "/v1/stats")
      #expect(stats["requests"]?.whole == 3001)
      #expect((stats["peakConcurrentStreams"]?.whole ?? 0) <= 1000)
    }
  }

  @Test("a registered certificate is accepted without a token, others are refused")
  func certificates() async throws {
    let authority = try CertificateAuthority(commonName: "test authority")
    var request = CertificateAuthority.LeafRequest(commonName: "push")
    request.userID = "com.example.app"
    request.apnsExtensions = [APNsExtension.production]
    let identity = try authority.issue(request)
    request.apnsExtensions = [APNsExtension.development]
    let development = try authority.issue(request)
    request.userID = "com.example.nobody"
    let stranger = try authority.issue(request)
    request.userID = "com.example.app"
    let unknownIssuer = try CertificateAuthority(commonName: "nobody's").issue(request)
    try await Harness.run(.changed { $0.clientAuthoritiesPEM = authority.certificate.pem }) {
      harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      func push(_ identity: CertificateIdentity, topic: String?) async throws -> Client.Reply {
        let client = try harness.connect(identity: identity)
        let headers = topic.map { [("apns-topic", $0)] } ?? []
        return await client.push("/3/device/" + device.token, headers)
      }
      #expect(try await push(identity, topic: "com.example.app").status == 200)
      #expect(try await push(identity, topic: nil).status == 200)
      #expect(try await push(identity, topic: "com.example.b").reason == "TopicDisallowed")
      #expect(
        try await push(development, topic: "com.example.app").reason == "BadCertificateEnvironment")
      #expect(try await push(stranger, topic: "com.example.app").reason == "BadCertificate")
      #expect(try await push(unknownIssuer, topic: "com.example.app").reason == "BadCertificate")
    }
  }

  @Test("a certificate with a list of topics must name one of them")
  func certificateTopics() async throws {
    let authority = try CertificateAuthority(commonName: "test authority")
    var request = CertificateAuthority.LeafRequest(commonName: "push")
    request.userID = "com.example.app"
    request.apnsExtensions = [APNsExtension.production]
    request.topics = ["com.example.app", "com.example.app.voip"]
    let identity = try authority.issue(request)
    try await Harness.run(.changed { $0.clientAuthoritiesPEM = authority.certificate.pem }) {
      harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let client = try harness.connect(identity: identity)
      #expect(await client.push("/3/device/" + device.token, []).reason == "MissingTopic")
      let named = await client.push("/3/device/" + device.token, [("apns-topic", app.bundleID)])
      #expect(named.status == 200)
      // With a certificate the limit is high from the start.
      #expect(client.connection.status.peerStreamLimit == 1000)
    }
  }

  @Test("a location push wants a token: with a certificate Apple takes none")
  func certificateForLocation() async throws {
    let authority = try CertificateAuthority(commonName: "test authority")
    var request = CertificateAuthority.LeafRequest(commonName: "push")
    request.userID = "com.example.app"
    request.apnsExtensions = [APNsExtension.production]
    let identity = try authority.issue(request)
    for strict in [true, false] {
      try await Harness.run(
        .changed {
          $0.clientAuthoritiesPEM = authority.certificate.pem
          $0.apns.strictSuffix = strict
        }
      ) { harness in
        let app = try harness.server.app()
        let made = try await harness.control(
          "POST", "/v1/devices", ["appId": .string(app.appID), "kind": "location"])
        let token = try #require(
          made["devices"]?.items.first?["handle"]?["token"]?.text ?? made["handle"]?["token"]?.text
        )
        let topic = app.bundleID + ".location-query"
        for headers in [
          [("apns-topic", topic), ("apns-push-type", "location")],
          [("apns-push-type", "location")],
        ] {
          let client = try harness.connect(identity: identity)
          let refused = await client.push("/3/device/" + token, headers)
          #expect(refused.status == 400 && refused.reason == "TopicDisallowed")
        }
        let taken = try await harness.connect().push(
          "/3/device/" + token,
          [
            ("authorization", "bearer " + (try Harness.token(app))), ("apns-topic", topic),
            ("apns-push-type", "location"),
          ])
        #expect(taken.status == 200)
      }
    }
  }

  @Test("a connection that was idle for over an hour is told to go")
  func idleConnections() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let client = try harness.connect()
      #expect(try await client.push(to: device.token, app).status == 200)
      try await harness.advance(seconds: 3601)
      try await eventually { client.connection.status.goAway != nil }
      let goAway = try #require(client.connection.status.goAway)
      #expect(goAway.code == 0)
      #expect(String(decoding: goAway.debugData, as: UTF8.self) == #"{"reason":"IdleTimeout"}"#)
    }
  }

  @Test("many bad tokens slow a connection down and end it, when the penalty is on")
  func penalty() async throws {
    try await Harness.run(.changed { $0.apns.errorPenalty = true }) { harness in
      let app = try harness.server.app()
      let jwt = try Harness.token(app)
      let client = try harness.connect()
      let bad = String(repeating: "ab", count: 32)
      for _ in 0..<50 {
        let reply = try await client.push(to: bad, app, jwt: jwt)
        #expect(reply.reason == "BadDeviceToken")
      }
      #expect(client.connection.status.goAway == nil)
      _ = try await client.push(to: bad, app, jwt: jwt)
      try await eventually { client.connection.status.goAway != nil }
    }
  }

  @Test("open connections are listed with their identity")
  func listedConnections() async throws {
    try await Harness.run { harness in
      let app = try harness.server.app()
      let device = try harness.server.makeDevices(app: app)[0]
      let client = try harness.connect()
      #expect(try await client.push(to: device.token, app).status == 200)
      let list = try await harness.control("GET", "/v1/connections")["connections"]?.items ?? []
      #expect(list.count == 1)
      #expect(list[0]["protocol"]?.text == "h2")
      #expect(list[0]["environment"]?.text == "production")
      #expect(list[0]["identity"]?["teamId"]?.text == app.teamID)
      #expect(list[0]["identity"]?["keyId"]?.text == app.keyID)
      #expect(list[0]["requests"]?.whole == 1)
      client.connection.close()
      try await eventually {
        try await harness.control("GET", "/v1/connections")["connections"]?.items.isEmpty == true
      }
    }
  }
}

/// Looks again and again until something has become true, with a pause that leaves the cores to
/// others; the test's limit of time bounds it.
func eventually(
  sourceLocation: SourceLocation = #_sourceLocation, _ condition: () async throws -> Bool
) async throws {
  while try await !condition() {
    try await Task.sleep(for: .milliseconds(1))
    guard !Task.isCancelled else {
      Issue.record("it did not become true", sourceLocation: sourceLocation)
      return
    }
  }
}
