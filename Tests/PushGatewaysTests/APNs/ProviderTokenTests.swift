import Cryptography
import Foundation
import HubCore
import HubTesting
import Testing

@testable import PushGateways

@Suite("Provider tokens")
struct ProviderTokenTests {
  private let clock = ManualClock(now: Date(timeIntervalSince1970: 1_700_000_000))

  private func make(unit: Double = 0.5) throws -> ProviderToken {
    let key = try P256PrivateKey(pem: APNsFixture.all.privateKeyPEM)
    return ProviderToken(
      key: .init(id: "ABC123DEFG", team: "DEF123GHIJ", key: key), clock: clock.hubClock,
      random: .always(unit))
  }

  @Test("it carries key id, team and time, and the key's signature")
  func contents() throws {
    let value = try make().current()
    let token = try CompactJWS(value.text)
    #expect(
      String(decoding: token.header.json, as: UTF8.self) == #"{"alg":"ES256","kid":"ABC123DEFG"}"#)
    #expect(
      String(decoding: token.claims.json, as: UTF8.self)
        == #"{"iss":"DEF123GHIJ","iat":1700000000}"#)
    #expect(token.verifies(with: try P256PublicKey(pem: APNsFixture.all.publicKeyPEM)))
  }

  @Test(
    "it is renewed after 50 minutes, give or take five",
    arguments: [(0.5, 50 * 60), (1.0, 55 * 60), (0.0, 45 * 60)])
  func renewal(unit: Double, seconds: Int) throws {
    let token = try make(unit: unit)
    let first = try token.current()
    clock.advance(by: .seconds(seconds - 1))
    #expect(try token.current() == first)
    clock.advance(by: .seconds(1))
    let second = try token.current()
    #expect(second.text != first.text)
    #expect(second.issuedAt == first.issuedAt + Int64(seconds))
  }

  @Test("a refused token is replaced once, however many were refused with it")
  func refusal() throws {
    let token = try make()
    let first = try token.current()
    token.invalidate(first)
    let second = try token.current()
    #expect(second != first)
    token.invalidate(first)
    #expect(try token.current() == second)
  }

  @Test("callers at the same moment get the same token")
  func sharing() async throws {
    let token = try make()
    let values = try await withThrowingTaskGroup(of: ProviderToken.Value.self) { group in
      for _ in 0..<32 { group.addTask { try token.current() } }
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(values.count == 1)
  }

  @Test("after too many updates it stays for 20 minutes, though refused or due")
  func freeze() throws {
    let token = try make()
    let first = try token.current()
    clock.advance(by: .seconds(35 * 60))
    token.keepForNow()
    token.invalidate(first)
    clock.advance(by: .seconds(20 * 60 - 1))
    #expect(try token.current() == first)
    clock.advance(by: .seconds(1))
    #expect(try token.current() != first)
  }

  @Test("not even then does it grow older than APNs takes it")
  func utmostAge() throws {
    let token = try make()
    let first = try token.current()
    clock.advance(by: .seconds(49 * 60))
    token.keepForNow()
    clock.advance(by: .seconds(10 * 60))
    #expect(try token.current() != first)
  }

  @Test("a clock put back makes a new token, not one from the future")
  func clockPutBack() throws {
    let token = try make()
    let first = try token.current()
    clock.set(Date(timeIntervalSince1970: 1_700_000_000 - 3600))
    let second = try token.current()
    #expect(second != first)
    #expect(second.issuedAt == 1_700_000_000 - 3600)
  }
}

@Suite("Pauses before connecting again")
struct ReconnectBackoffTests {
  @Test("they double from one second to a minute and end with a success")
  func doubling() {
    var now = Date(timeIntervalSince1970: 0)
    var backoff = ReconnectBackoff()
    #expect(backoff.allows(now))
    for pause in [1, 2, 4, 8, 16, 32, 60, 60] as [Double] {
      backoff.failed(at: now, draw: 0)
      #expect(!backoff.allows(now + pause - 0.001))
      now += pause
      #expect(backoff.allows(now))
    }
    backoff.failed(at: now, draw: 1)
    #expect(backoff.allows(now + 30))
    backoff.succeeded()
    #expect(backoff.allows(now))
    backoff.failed(at: now, draw: 0)
    #expect(backoff.allows(now + 1))
  }
}
