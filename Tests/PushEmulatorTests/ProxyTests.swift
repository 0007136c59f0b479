import Cryptography
import Foundation
import HTTPServer
import HubTesting
import Synchronization
import Testing
import Wire

@testable import PushEmulator

/// Whom the proxy leads where, and what becomes of those who ask for anything else.
@Suite("The proxy", .timeLimit(.minutes(5)))
struct ProxyTests {
  // MARK: Requests

  private static func request(_ line: String) throws(ProxyRefusal) -> ConnectRequest {
    try ConnectRequest(Array("\(line)\r\nHost: other.example".utf8)[...])
  }

  @Test(
    "takes a host in any notation",
    arguments: [
      ("fcm.googleapis.com:443", "fcm.googleapis.com", 443),
      ("FCM.GoogleAPIs.com.:443", "fcm.googleapis.com", 443),
      ("127.0.0.1:1", "127.0.0.1", 1),
      ("[::1]:65535", "0:0:0:0:0:0:0:1", 65535),
      ("[0:0::0001]:443", "0:0:0:0:0:0:0:1", 443),
    ] as [(String, String, UInt16)])
  func hosts(target: String, host: String, port: UInt16) throws {
    let request = try Self.request("CONNECT \(target) HTTP/1.1")
    #expect(request.host.description == host)
    #expect(request.port == port)
  }

  @Test(
    "refuses a malformed CONNECT",
    arguments: [
      "CONNECT fcm.googleapis.com HTTP/1.1", "CONNECT fcm.googleapis.com:0 HTTP/1.1",
      "CONNECT fcm.googleapis.com:65536 HTTP/1.1", "CONNECT fcm.googleapis.com:99999999 HTTP/1.1",
      "CONNECT fcm.googleapis.com:-443 HTTP/1.1", "CONNECT fcm.googleapis.com: HTTP/1.1",
      "CONNECT fcm.googleapis.com:443:443 HTTP/1.1", "CONNECT user@fcm.googleapis.com:443 HTTP/1.1",
      "CONNECT user:pass@fcm.googleapis.com:443 HTTP/1.1", "CONNECT :443 HTTP/1.1",
      "CONNECT https://fcm.googleapis.com:443 HTTP/1.1", "CONNECT ::1:443 HTTP/1.1",
      "CONNECT [fcm.googleapis.com]:443 HTTP/1.1", "CONNECT [127.0.0.1]:443 HTTP/1.1",
      "CONNECT [::1%lo]:443 HTTP/1.1", "CONNECT [::1:443 HTTP/1.1",
      "CONNECT fcm..googleapis.com:443 HTTP/1.1", "CONNECT fcm.googleapis.com..:443 HTTP/1.1",
      "CONNECT fcm.googleapis.com:443 HTTP/2.0", "CONNECT fcm.googleapis.com:443",
      "CONNECT  fcm.googleapis.com:443 HTTP/1.1", "CONNECT fcm.googleapis.com:443 HTTP/1.1 x",
      "CONNECT 0x7f.1:443 HTTP/1.1", "CONNECT 127.0.0.1.:443 HTTP/1.1",
      "CONNECT 2130706433:443 HTTP/1.1", "CONNECT \u{212A}.example:443 HTTP/1.1",
      "CONNECT fcm.googleapis.com\0.evil:443 HTTP/1.1", "CONNECT ﬁ.googleapis.com:443 HTTP/1.1", "",
    ])
  func malformed(line: String) {
    #expect(throws: ProxyRefusal.malformed) { try Self.request(line) }
  }

  @Test("does not forward plain HTTP")
  func plain() {
    #expect(throws: ProxyRefusal.onlyConnect) {
      try Self.request("GET http://fcm.googleapis.com/ HTTP/1.1")
    }
  }

  @Test(
    "knows the hosts of push services, and no host that only resembles one",
    arguments: [
      ("fcm.googleapis.com", PushService.fcm), ("oauth2.googleapis.com", .fcm),
      ("iid.googleapis.com", .fcm), ("accounts.google.com", .fcm), ("www.googleapis.com", .fcm),
      ("mail.google.com", nil), ("api.push.apple.com", .apns),
      ("api.sandbox.push.apple.com", .apns), ("api.development.push.apple.com", .apns),
      ("db5p.notify.windows.com", .wns), ("updates.push.services.mozilla.com", .webpush),
      ("web.push.apple.com", .webpush), ("notify.windows.com", nil), (".notify.windows.com", nil),
      ("a.b.notify.windows.com", nil), ("notify.windows.com.evil.example", nil),
      ("xnotify.windows.com", nil), ("fcm.googleapis.com.evil.example", nil),
      ("evil-fcm.googleapis.com", nil), ("googleapis.com", nil), ("storage.googleapis.com", nil),
    ] as [(String, PushService?)])
  func names(host: String, service: PushService?) {
    #expect(PublicHost.named(host)?.listeners.http2.service == service)
  }

  // MARK: Connections

  private static func run(
    _ proxy: ProxyOptions = ProxyOptions(),
    _ body: @escaping @Sendable (UInt16, EmulatorAddresses) throws -> Void
  ) async throws {
    let options = EmulatorOptions.changed { $0.proxy = proxy }
    try await Harness.run(options) { harness in
      let addresses = harness.addresses
      let port = try #require(addresses.proxy?.split(separator: ":").last.flatMap { UInt16($0) })
      try await onThread { try body(port, addresses) }
    }
  }

  private static func connect(_ target: String, at port: UInt16) throws -> RawClient {
    let client = try RawClient(port: port)
    try client.send("CONNECT \(target) HTTP/1.1\r\nHost: \(target)\r\n\r\n")
    return client
  }

  @Test(
    "leads to the stand-in, which has a certificate for the real name and the protocol asked for",
    arguments: [
      ("fcm.googleapis.com:443", ["h2", "http/1.1"], "h2"), ("oauth2.googleapis.com:443", [], ""),
      ("api.push.apple.com:2197", ["h2"], "h2"), ("wns2.notify.windows.com:443", ["http/1.1"], ""),
      ("web.push.apple.com:443", ["h2", "http/1.1"], "h2"),
    ])
  func tunnel(target: String, protocols: [String], chosen: String) async throws {
    try await Self.run { port, addresses in
      let client = try Self.connect(target, at: port)
      #expect(try client.readHead().status == 200)
      let name = String(target.prefix { $0 != ":" })
      try client.startTLS(as: name, trusting: addresses.authorityPEM, offering: protocols)
      #expect(client.chosenProtocol == chosen || chosen.isEmpty)
      guard chosen.isEmpty else { return }
      let reply = try client.exchange("GET / HTTP/1.1\r\nHost: \(name)\r\n\r\n")
      #expect((400..<500).contains(reply.status))
    }
  }

  @Test("a service's certificate is for its own names only, whatever the client asks for by SNI")
  func otherName() async throws {
    try await Self.run { port, addresses in
      let client = try Self.connect("fcm.googleapis.com:443", at: port)
      #expect(try client.readHead().status == 200)
      #expect(throws: RawClient.Failure.self) {
        try client.startTLS(as: "api.push.apple.com", trusting: addresses.authorityPEM)
      }
    }
  }

  @Test("takes a client that sends its first bytes of TLS before the reply")
  func early() async throws {
    try await Self.run { port, addresses in
      let standIn = addresses[.wns].split(separator: ":").last ?? ""
      let client = try RawClient(port: port)
      // No TLS at all, which ends at the stand-in.
      try client.send("CONNECT 127.0.0.1:\(standIn) HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
      #expect(try client.readHead().status == 200)
      _ = try client.readToEnd()
    }
  }

  @Test(
    "refuses every other host, and services of this machine",
    arguments: [
      ("example.com:443", 403), ("127.0.0.1:443", 403), ("127.0.0.1:22", 403),
      ("[::1]:22", 403), ("[::ffff:127.0.0.1]:443", 403), ("0.0.0.0:443", 403),
      ("169.254.169.254:443", 403), ("metadata.google.internal:443", 403),
      ("2130706433:443", 400), ("fcm.googleapis.com:22", 403), ("api.push.apple.com:443.", 400),
    ])
  func forbidden(target: String, status: Int) async throws {
    try await Self.run { port, _ in
      let client = try Self.connect(target, at: port)
      let reply = try client.readReply()
      #expect(reply.status == status)
      #expect(reply.body.hasPrefix("belfry: "))
      #expect(try client.readToEnd() == "")
    }
  }

  @Test("reports a refused host once")
  func reports() async throws {
    let reported = Mutex<[String]>([])
    var options = ProxyOptions()
    options.onForbiddenHost = { host in reported.withLock { $0.append(host.description) } }
    try await Self.run(options) { port, _ in
      for host in ["a.example", "A.example", "b.example"] {
        _ = try Self.connect("\(host):443", at: port).readReply()
      }
    }
    #expect(reported.withLock { $0 } == ["a.example", "b.example"])
  }

  @Test(
    "an allowed name reaches no private address, and an allowed host one port only",
    arguments: [
      ("localhost:443", 502), ("LOCALHOST.:443", 502), ("localhost:8443", 403),
      ("host.invalid:443", 502), ("sub.localhost:443", 403),
    ])
  func allowed(target: String, status: Int) async throws {
    var options = ProxyOptions()
    options.allowedHosts = [.name("localhost"), .name("host.invalid")]
    try await Self.run(options) { port, _ in
      let reply = try Self.connect(target, at: port).readReply()
      #expect(reply.status == status)
    }
  }

  @Test("answers a client that says nothing, and closes one that is silent in its tunnel")
  func silent() async throws {
    var options = ProxyOptions()
    options.setupTimeout = .milliseconds(200)
    try await Self.run(options) { port, _ in
      #expect(try RawClient(port: port).readReply().status == 408)
      let client = try Self.connect("fcm.googleapis.com:443", at: port)
      #expect(try client.readHead().status == 200)
      #expect(try client.readToEnd() == "")
    }
  }

  @Test("leads a client that speaks TLS at once by the name that it wants to reach")
  func serverName() async throws {
    try await Self.run { port, addresses in
      let client = try RawClient(port: port)
      try client.startTLS(
        as: "api.push.apple.com", trusting: addresses.authorityPEM, offering: ["h2"])
      #expect(client.chosenProtocol == "h2")
      let refused = try RawClient(port: port)
      #expect(throws: RawClient.Failure.self) {
        try refused.startTLS(as: "example.com", trusting: addresses.authorityPEM)
      }
    }
  }

  @Test("answers a head without end, and bytes that are neither HTTP nor TLS")
  func bounds() async throws {
    try await Self.run { port, _ in
      let client = try RawClient(port: port)
      try client.send("CONNECT " + String(repeating: "a", count: 10_000))
      #expect(try client.readReply().status == 431)
      for bytes: [UInt8] in [
        [0, 1, 2, 3], Array("CONNECT fcm.googleapis.com:443 HTTP/1.1\n\n".utf8),
      ] {
        let other = try RawClient(port: port)
        try other.send(bytes)
        #expect(try other.readReply().status == 400)
      }
    }
  }

  @Test("has a limit of connections, and room again when they are gone")
  func full() async throws {
    var options = ProxyOptions()
    options.maxConnections = 8
    try await Self.run(options) { port, _ in
      var clients: [RawClient] = []
      for _ in 0..<8 {
        clients.append(try Self.connect("fcm.googleapis.com:443", at: port))
        #expect(try clients.last?.readHead().status == 200)
      }
      #expect(try RawClient(port: port).readReply().status == 503)
      clients = []
      // The proxy sees the ends one after the other.
      var status = 503
      while status == 503 {
        status = try Self.connect("fcm.googleapis.com:443", at: port).readHead().status
      }
      #expect(status == 200)
    }
  }

  @Test("closes its connections when the emulator stops")
  func stop() async throws {
    let left = Mutex<Shared<RawClient>?>(nil)
    try await Self.run { port, _ in
      let client = try Self.connect("fcm.googleapis.com:443", at: port)
      #expect(try client.readHead().status == 200)
      left.withLock { $0 = Shared(client) }
    }
    let client = try #require(left.withLock { $0 })
    #expect(try await onThread { try client.value.readToEnd() } == "")
  }

  @Test(
    "whoever has the key of the authority can pose as push services and this machine only",
    arguments: [
      ("localhost", true), ("fcm.googleapis.com", true), ("db5p.notify.windows.com", true),
      ("accounts.google.com", true), ("example.com", false), ("mail.google.com", false),
      ("storage.googleapis.com", false),
    ])
  func constraints(name: String, isGood: Bool) async throws {
    let (authority, _) = try EmulatorAuthority.load(directory: nil)
    let identity = try authority.issueForLocalhost(moreNames: [name])
    var configuration = HTTPConfiguration()
    configuration.tls = TLSIdentity(
      certificatePEM: identity.certificatePEM, privateKeyPEM: try identity.privateKeyPEM())
    let server = try HTTPListener(configuration, handler: HTTPRouter())
    let port = server.port
    let isTaken = try await onThread {
      let client = try RawClient(port: port)
      do {
        try client.startTLS(as: name, trusting: authority.certificate.pem)
        return true
      } catch is RawClient.Failure {
        return false
      }
    }
    #expect(isTaken == isGood)
    await server.stop(within: .zero)
  }

  @Test(
    "an authority from an earlier run that lacks hosts, or is good for any, is not taken",
    arguments: [["fcm.googleapis.com"], nil])
  func otherAuthority(domains: [String]?) throws {
    let directory = try ServerTests.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let authority = try CertificateAuthority(commonName: "test", onlyFor: domains)
    try Data(authority.certificate.pem.utf8).write(to: .init(filePath: directory + "/ca.pem"))
    try Data(authority.key.pem().utf8).write(to: .init(filePath: directory + "/ca-key.pem"))
    let error = #expect(throws: EmulatorError.self) {
      try EmulatorAuthority.load(directory: directory, isForProxy: true)
    }
    #expect(error?.description.contains("remove it and ca-key.pem") == true)
    // Without the proxy it need not be good for any of them.
    let taken = try EmulatorAuthority.load(directory: directory).authority
    #expect(taken.certificate == authority.certificate)
  }

  @Test("its own authority is taken again")
  func ownAuthority() throws {
    let directory = try ServerTests.temporaryDirectory()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let made = try EmulatorAuthority.load(directory: directory, isForProxy: true).authority
    let read = try EmulatorAuthority.load(directory: directory, isForProxy: true).authority
    #expect(made.certificate == read.certificate)
  }

  // MARK: Requests in a tunnel

  @Test(
    "a host serves its own paths, and a request for a host of another service is misdirected",
    arguments: [
      ("fcm.googleapis.com", "fcm.googleapis.com", "/v1/projects/p/messages:send", 401),
      ("fcm.googleapis.com", "FCM.googleapis.com:443", "/v1/projects/p/messages:send", 401),
      ("fcm.googleapis.com", "127.0.0.1:443", "/v1/projects/p/messages:send", 401),
      ("fcm.googleapis.com", "evil.example", "/v1/projects/p/messages:send", 421),
      ("fcm.googleapis.com", "login.live.com", "/accesstoken.srf", 421),
      ("fcm.googleapis.com", "web.push.apple.com", "/wp/x", 421),
      ("fcm.googleapis.com", "fcm.googleapis.com", "/token", 404),
      ("oauth2.googleapis.com", "oauth2.googleapis.com", "/token", 400),
      ("oauth2.googleapis.com", "oauth2.googleapis.com", "/v1/projects/p/messages:send", 404),
      ("iid.googleapis.com", "iid.googleapis.com", "/v1/projects/p/messages:send", 404),
      ("iid.googleapis.com", "iid.googleapis.com", "/iid/v1:batchAdd", 401),
      ("accounts.google.com", "accounts.google.com", "/o/oauth2/token", 400),
      ("accounts.google.com", "accounts.google.com", "/token", 404),
      ("www.googleapis.com", "www.googleapis.com", "/oauth2/v4/token", 400),
      ("login.live.com", "login.live.com", "/accesstoken.srf", 400),
      ("db5p.notify.windows.com", "db5p.notify.windows.com", "/accesstoken.srf", 401),
      ("login.microsoftonline.com", "login.microsoftonline.com", "/t/oauth2/v2.0/token", 400),
      ("login.live.com", "login.live.com", "/t/oauth2/v2.0/token", 401),
    ])
  func paths(tunnel: String, host: String, path: String, status: Int) async throws {
    try await Self.run { port, addresses in
      let client = try Self.connect(tunnel + ":443", at: port)
      #expect(try client.readHead().status == 200)
      try client.startTLS(as: tunnel, trusting: addresses.authorityPEM)
      let reply = try client.exchange(
        "POST \(path) HTTP/1.1\r\nHost: \(host)\r\nContent-Length: 0\r\n\r\n")
      #expect(reply.status == status)
    }
  }

  @Test(
    "a VAPID token is good for the endpoint's own origin, and a subscription at its vendor's host",
    arguments: [
      ("updates.push.services.mozilla.com", "/wpush/v2/", nil, 201),
      ("updates.push.services.mozilla.com", "/wpush/v2/", "https://fcm.googleapis.com", 403),
      ("updates.push.services.mozilla.com", "/wpush/v2/", "https://127.0.0.1", 403),
      ("fcm.googleapis.com", "/fcm/send/", nil, 201),
      ("fcm.googleapis.com", "/fcm/send/", "https://web.push.apple.com", 403),
      ("web.push.apple.com", "/", nil, 201),
      ("updates.push.services.mozilla.com", "/fcm/send/", nil, 404),
      ("fcm.googleapis.com", "/wpush/v2/", nil, 404),
      ("web.push.apple.com", "/wpush/v2/", nil, 404),
    ] as [(String, String, String?, Int)])
  func audience(host: String, path: String, audience: String?, status: Int) async throws {
    try await WebPushScene.run([:], .changed { $0.proxy = ProxyOptions() }) { scene in
      let addresses = scene.harness.addresses
      let port = try #require(addresses.proxy?.split(separator: ":").last.flatMap { UInt16($0) })
      let authorization = try scene.authorization([
        "aud": .string(audience ?? "https://" + host)
      ])
      let target = path + scene.path.lastSegment
      try await onThread {
        let client = try Self.connect(host + ":443", at: port)
        #expect(try client.readHead().status == 200)
        try client.startTLS(as: host, trusting: addresses.authorityPEM)
        let reply = try client.exchange(
          "POST \(target) HTTP/1.1\r\nHost: \(host)\r\nTTL: 0\r\n"
            + "Authorization: \(authorization)\r\nContent-Length: 0\r\n\r\n")
        #expect(reply.status == status)
      }
    }
  }

  @Test("without it no certificate is for a name of the internet")
  func noProxy() async throws {
    try await Harness.run { harness in
      let addresses = harness.addresses
      #expect(addresses.proxy == nil)
      let port = try #require(UInt16(addresses[.fcm].split(separator: ":").last ?? ""))
      try await onThread {
        let client = try RawClient(port: port)
        #expect(throws: RawClient.Failure.self) {
          try client.startTLS(
            as: "fcm.googleapis.com", trusting: addresses.authorityPEM, offering: ["h2"])
        }
      }
    }
  }
}
