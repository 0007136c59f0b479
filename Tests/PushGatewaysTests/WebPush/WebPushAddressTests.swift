import Cryptography
import Foundation
import HTTP2
import HubCore
import HubTesting
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("Where subscriptions may point", .timeLimit(.minutes(5)))
struct WebPushAddressTests {
  private func endpoint(_ url: String) -> WebPushEndpoint? { WebPushEndpoint(Array(url.utf8)[...]) }

  @Test(
    "an endpoint comes apart into origin and path",
    arguments: [
      ("https://a.example/x", "https://a.example", "/x"),
      ("HTTPS://A.Example:443/x?y=1&z", "https://a.example", "/x?y=1&z"),
      ("https://a.example:8443/", "https://a.example:8443", "/"),
      ("https://[::1]:9/x", "https://[::1]:9", "/x"),
      ("https://127.0.0.1/a@b:c", "https://127.0.0.1", "/a@b:c"),
    ])
  func parts(url: String, origin: String, path: String) throws {
    let found = try #require(endpoint(url))
    #expect(found.origin.text == origin)
    #expect(String(decoding: found.path, as: UTF8.self) == path)
  }

  @Test(
    "what is not plainly an https URL is none",
    arguments: [
      "", "https://", "http://a.example/x", "https://a.example", "https:///x", "https://a b/x",
      "https://user@a.example/x", "https://a.example\\@evil/x", "https://a.example#@evil/x",
      "https://a.example?x", "https://a.example:/x", "https://a.example:0/x",
      "https://a.example:65536/x", "https://a.example:+1/x", "https://[::1/x", "https://[a]/x",
      "https://[127.0.0.1]/x", "https://a%2eexample/x", "https://ä.example/x", "https://a/\u{7F}",
      "ftp://a/x", "https://a.example/x/../y", "https://a.example/%2e./y?z",
      "https://a.example/" + String(repeating: "x", count: 3000),
    ])
  func bad(url: String) {
    #expect(endpoint(url) == nil)
  }

  @Test("the vendors' hosts and those that the operator names are allowed, nobody else's")
  func hosts() throws {
    let hosts = WebPushHosts(["Push.Example.com", ".lan.example", "10.0.0.7"])
    func admission(_ host: String) -> WebPushHosts.Admission? {
      hosts.admission(of: Origin(host: host, port: 443))
    }
    for host in WebPushHosts.vendors.filter({ !$0.hasPrefix(".") }) + ["db5.notify.windows.com"] {
      #expect(admission(host) == .publicOnly)
    }
    for host in ["push.example.com", "a.lan.example", "10.0.0.7"] {
      #expect(admission(host) == .anywhere)
    }
    for host in [
      "evil.example", "notify.windows.com", "notify.windows.com.evil.example",
      "evilnotify.windows.com", "a.push.example.com", "lan.example", "10.0.0.8", "127.0.0.1",
      "localhost", "web.push.apple.com.", "0x7f.1", "2130706433",
    ] {
      #expect(admission(host) == nil)
    }
    let google = Origin(host: "fcm.googleapis.com", port: 443)
    #expect(hosts.allows(Array("/fcm/send/x".utf8)[...], of: google))
    #expect(hosts.allows(Array("/wp/x".utf8)[...], of: google))
    #expect(!hosts.allows(Array("/v1/projects/p/messages:send".utf8)[...], of: google))
  }

  @Test("with webPushHosts public, any host is allowed on the usual port, at public addresses only")
  func anyPublic() {
    let hosts = WebPushHosts(["push.lan.example"], reach: .anyPublic)
    func admission(_ host: String, port: UInt16 = 443) -> WebPushHosts.Admission? {
      hosts.admission(of: Origin(host: host, port: port))
    }
    for host in ["push.example.org", "localhost", "10.0.0.7", "0x7f.1", "::1"] {
      #expect(admission(host) == .publicOnly)
      #expect(admission(host, port: 8443) == nil)
    }
    #expect(admission("push.lan.example", port: 8443) == .anywhere)
    #expect(admission("fcm.googleapis.com.") == nil)
    let google = Origin(host: "fcm.googleapis.com", port: 443)
    #expect(!hosts.allows(Array("/v1/projects/p/messages:send".utf8)[...], of: google))
  }

  @Test("a subscription at a host that is not allowed gets no connection and stays")
  func notAllowed() async throws {
    let bench = try WebPushBench(allowing: [])
    let browsers = try bench.browsers(2)
    let results = await (try bench.gateway()).deliver(try WebPushBench.batch(browsers))
    for result in results {
      #expect(result.outcome == .badChannel && result.handle == .keep && result.retry == .final)
      #expect(result.reason?.hasPrefix(PushResult.refusedHere) == true)
      #expect(result.reason?.contains("webPushHosts") == true)
    }
    #expect(bench.fake.connects == 0)
  }

  @Test("a vendor's name that leads to a private address gets no connection, on either protocol")
  func rebinding() async throws {
    let bench = try WebPushBench()
    let origins = WebPushOrigins(
      supplies: GatewaySupplies(bench.configuration, clock: bench.clock.hubClock, random: .system))
    let link = origins.link(
      to: Origin(host: "localhost", port: bench.server.port), .publicOnly)
    func send() async -> LinkReply {
      await link.send([0]) { _ in
        var wire = HTTP2RequestBatch(authority: "localhost", replyHeaders: ["retry-after"])
        wire.addRequest(path: wire.write("/wp/0"), fields: wire.addFieldSet([]))
        return wire
      }[0]
    }
    for _ in 0..<2 {
      let reply = await send()
      #expect(reply.trouble == .refusedAddress)
      let verdict = WebPushReply.verdict(reply, hadSuccess: true, now: 0)
      #expect(verdict.result.outcome == .badChannel && verdict.result.handle == .keep)
      #expect(verdict.result.reason?.hasPrefix(PushResult.refusedHere) == true)
    }
    #expect(bench.fake.connects == 0)
  }

  @Test("no more origins are held than the configuration says")
  func bound() async throws {
    let bench = try WebPushBench(maxOrigins: 2)
    let origins = WebPushOrigins(
      supplies: GatewaySupplies(bench.configuration, clock: bench.clock.hubClock, random: .system))
    func link(_ port: UInt16) -> OriginLink {
      origins.link(to: Origin(host: "localhost", port: port), .anywhere)
    }
    let first = link(1)
    let second = link(2)
    #expect(link(1) === first)
    _ = link(3)
    #expect(origins.count == 2)
    #expect(link(1) === first)
    #expect(link(2) !== second)
  }
}
