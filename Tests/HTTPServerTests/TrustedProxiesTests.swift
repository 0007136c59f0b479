import HTTPServer
import Testing

@Suite("Trusted proxies")
struct TrustedProxiesTests {
  private func client(
    _ proxies: [String], from peer: String, _ headers: [(String, String)]
  ) throws -> String {
    var fields = HTTPHeaders()
    for (name, value) in headers { fields.add(name, value) }
    return try TrustedProxies(proxies).client(
      of: HTTPRequest(
        method: .get, target: HTTPTarget("/"), headers: fields, remoteAddress: peer))
  }

  @Test("from a peer that is not trusted the headers are not looked at")
  func spoofed() throws {
    let headers = [
      ("X-Forwarded-For", "198.51.100.1"), ("Forwarded", "for=198.51.100.1"),
    ]
    for proxies in [[], ["10.0.0.0/8"], ["2001:db8::/32"]] {
      #expect(try client(proxies, from: "203.0.113.5", headers) == "203.0.113.5")
    }
  }

  @Test("the client is the first address from the right that is not a trusted proxy")
  func chain() throws {
    let proxies = ["10.0.0.0/8", "127.0.0.1"]
    let cases: [([(String, String)], String)] = [
      ([("X-Forwarded-For", "198.51.100.1")], "198.51.100.1"),
      // What the client wrote itself stands further left.
      ([("X-Forwarded-For", "1.2.3.4, 198.51.100.1")], "198.51.100.1"),
      ([("X-Forwarded-For", "1.2.3.4, 198.51.100.1,10.0.0.9 ")], "198.51.100.1"),
      ([("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-For", "198.51.100.1")], "198.51.100.1"),
      ([("X-Forwarded-For", "198.51.100.1:4711")], "198.51.100.1"),
      ([("X-Forwarded-For", "2001:db8::7")], "2001:db8::7"),
      ([("X-Forwarded-For", "[2001:db8::7]:443")], "2001:db8::7"),
      ([("X-Forwarded-For", "::ffff:198.51.100.1")], "198.51.100.1"),
      // All of them proxies: the one furthest away.
      ([("X-Forwarded-For", "10.0.0.7, 10.0.0.8")], "10.0.0.7"),
      // What cannot be read ends what is known.
      ([("X-Forwarded-For", "198.51.100.1, unknown")], "10.1.2.3"),
      ([("X-Forwarded-For", "198.51.100.1, unknown, 10.0.0.8")], "10.0.0.8"),
      ([("X-Forwarded-For", "")], "10.1.2.3"),
      ([("X-Forwarded-For", "localhost")], "10.1.2.3"),
      ([], "10.1.2.3"),
      // One header alone is read: a client that adds the other changes nothing.
      ([("X-Forwarded-For", "198.51.100.1"), ("Forwarded", "for=1.2.3.4")], "198.51.100.1"),
      ([("Forwarded", "for=1.2.3.4")], "10.1.2.3"),
    ]
    for (headers, expected) in cases {
      #expect(try client(proxies, from: "10.1.2.3", headers) == expected, "\(headers)")
    }
  }

  @Test("networks are compared to the bit")
  func networks() throws {
    let proxies = try TrustedProxies(["10.1.0.0/15", "192.0.2.7", "2001:db8:8000::/33"])
    for address in [
      "9.255.255.255", "10.2.0.1", "192.0.2.8", "2001:db8:7fff::1", "", "x", "localhost",
    ] {
      #expect(!proxies.contains(address), "\(address)")
    }
    for address in ["10.1.255.255", "192.0.2.7", "::ffff:192.0.2.7", "2001:db8:ffff::1"] {
      #expect(proxies.contains(address), "\(address)")
    }
  }

  @Test(
    "what is no network is refused with what is wrong",
    arguments: [
      "", "10.0.0.0/33", "10.0.0.0/0", "10.0.0/8", "proxy.local", "::/129", "1.2.3.4/8/9",
    ])
  func faults(_ text: String) {
    #expect(throws: TrustedProxies.Fault.self) { try TrustedProxies([text]) }
  }

  @Test("a client is counted by its IPv4 address or IPv6 network")
  func counting() {
    func texts(_ address: String) -> [String?] {
      let network = ClientNetwork(address)
      return [network?.description, network?.site]
    }
    #expect(texts("192.0.2.1") == ["192.0.2.1", "192.0.2.1"])
    #expect(texts("::ffff:192.0.2.1") == ["192.0.2.1", "192.0.2.1"])
    #expect(texts("2001:db8:1:2:3::4") == ["2001:db8:1:2/64", "2001:db8:1/48"])
    #expect(texts("2001:db8:1:3::1") == ["2001:db8:1:3/64", "2001:db8:1/48"])
    for text in ["", "localhost", "x"] { #expect(ClientNetwork(text) == nil) }
  }
}
