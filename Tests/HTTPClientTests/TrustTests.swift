import Cryptography
import HTTPClient
import HTTPServer
import HubTesting
import Synchronization
import Testing

@Suite("Whom the HTTP/1.1 client trusts", .timeLimit(.minutes(5)))
struct TrustTests {
  @Test("a certificate that no trusted authority signed is refused")
  func strangeAuthority() async throws {
    let other = try CertificateAuthority(commonName: "Other").certificate.pem
    for anchors in ["", other] {
      try await withSecureServer {
        $0.extraAnchorsPEM = Array(anchors.utf8)
      } answer: { _ in
        HTTPResponse(.ok)
      } body: { peer in
        #expect(await peer.answer("/").kind == .tls)
      }
    }
  }

  @Test("a certificate for another host is refused")
  func otherHost() async throws {
    var leaf = CertificateAuthority.LeafRequest(commonName: "example.org")
    leaf.dnsNames = ["example.org"]
    try await withSecureServer(leaf: leaf) { _ in
      HTTPResponse(.ok)
    } body: { peer in
      #expect(await peer.answer("/").kind == .tls)
    }
  }

  @Test("an address that is not allowed is not connected to")
  func veto() async throws {
    let asked = Mutex<[IPAddress]>([])
    try await withSecureServer {
      $0.allowsAddress = { address in
        asked.withLock { $0.append(address) }
        return address.isPublic
      }
    } answer: { _ in
      HTTPResponse(.ok)
    } body: { peer in
      let result = await peer.answer("/")
      #expect(result.kind == .refusedAddress)
      #expect(asked.withLock { $0.contains { $0.bytes == [127, 0, 0, 1] } })
      for host in ["127.0.0.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:127.0.0.1]"] {
        let call = HTTPCall(url: "https://\(host):\(peer.listener.port)/")
        let results = await peer.session.send([call], lane: HTTPLane(limit: 1))
        #expect(results.map(\.kind) == [.refusedAddress], "\(host)")
      }
    }
  }

  @Test("an allowed address is connected to")
  func allowed() async throws {
    try await withSecureServer {
      $0.allowsAddress = { $0.bytes == [127, 0, 0, 1] }
    } answer: { _ in
      HTTPResponse(.ok)
    } body: { peer in
      #expect(await peer.answer("/").kind == nil)
    }
  }

  @Test("nobody there, and no such name")
  func nobody() async throws {
    let session = HTTPSession()
    let listener = try HTTPListener(handler: ClosureHandler { _ in HTTPResponse(.ok) })
    let port = listener.port
    await listener.stop()
    for (host, kind) in [
      ("127.0.0.1:\(port)", HTTPFailure.Kind.connect), ("nowhere.invalid", .resolve),
    ] {
      let results = await session.send(
        [HTTPCall(url: "https://\(host)/")], lane: HTTPLane(limit: 1))
      #expect(results.map(\.kind) == [kind])
    }
  }

  @Test(
    "which addresses are public",
    arguments: [
      ("8.8.8.8", true), ("20.190.1.1", true), ("127.0.0.1", false), ("10.1.2.3", false),
      ("172.16.0.1", false), ("172.32.0.1", true), ("192.168.1.1", false),
      ("169.254.169.254", false),
      ("100.64.0.1", false), ("0.0.0.0", false), ("255.255.255.255", false), ("224.0.0.1", false),
      ("198.18.0.1", false), ("::1", false), ("::", false), ("fe80::1", false), ("fd00::1", false),
      ("ff02::1", false), ("2001:4860:4860::8888", true), ("2001:db8::1", false),
      ("::ffff:10.0.0.1", false), ("::ffff:8.8.8.8", true), ("64:ff9b::7f00:1", false),
      ("2002:7f00:1::", false), ("2603:1000::1", true),
      ("168.63.129.16", false), ("168.63.129.17", true), ("::ffff:168.63.129.16", false),
    ])
  func publicAddresses(text: String, isPublic: Bool) throws {
    #expect(try #require(IPAddress(text)).isPublic == isPublic)
  }

  @Test("the parts of a URL, read as they will be used")
  func parts() throws {
    let address = try #require(HTTPAddress("https://DB5.Notify.Windows.com/?token=a%2Fb%3d"))
    #expect(address.host == "db5.notify.windows.com")
    #expect(address.port == 443)
    #expect(address.query == "token=a%2Fb%3d")
    #expect(address.isHost(in: [".notify.windows.com"]))
    #expect(!address.isHost(in: ["notify.windows.com", ".windows.net"]))
    let other = try #require(HTTPAddress("https://evilnotify.windows.com:8443/x"))
    #expect(!other.isHost(in: [".notify.windows.com"]))
    #expect(other.port == 8443)
    for bad in [
      "", "https://", "https://a@b/", "https://a/#b", "https:\\\\a", "https://a b/", "//a",
      "file:///x",
      "https://a:0/", "https://a:70000/", "https://a/x/../y", "https://a/.", "https://a/%2E%2e/b?c",
    ] {
      #expect(HTTPAddress(bad) == nil, "\(bad)")
    }
  }
}
