import Foundation
import Synchronization
import Testing
import Wire

@testable import NotificationHubs

/// A clock that tests move.
final class ManualClock: Sendable {
  private let seconds = Mutex<Double>(1_900_000_000)
  var now: Date { Date(timeIntervalSince1970: seconds.withLock { $0 }) }
  func advance(by interval: Double) { seconds.withLock { $0 += interval } }
}

@Suite("Token provider")
struct TokenProviderTests {
  struct Refused: Error {}

  static func token(lifetime: Double, at now: Date) -> SharedAccessSignature {
    SharedAccessSignature(
      resource: "https://h/hub1", keyName: "n", key: "k",
      expiresAt: now.addingTimeInterval(lifetime))
  }

  /// The older tutorials keep the duration (3600) as the expiry, so every token looks expired since
  /// 1970 and a new one is made for every call, or none ever.
  @Test("a token is kept until nine tenths of its life have passed, then renewed")
  func renewal() async throws {
    let clock = ManualClock()
    let fetches = Mutex(0)
    let provider = TokenProvider(
      now: { clock.now },
      fetch: {
        fetches.withLock { $0 += 1 }
        return Self.token(lifetime: 3600, at: clock.now)
      })
    let first = try await provider.token()
    #expect(first.expiresAt == clock.now.addingTimeInterval(3600))
    #expect(first.text.contains("&se=1900003600&"))
    for _ in 0..<3 { #expect(try await provider.token() == first) }
    clock.advance(by: 3239)
    #expect(try await provider.token() == first)
    #expect(fetches.withLock { $0 } == 1)
    clock.advance(by: 2)
    let second = try await provider.token()
    #expect(second.expiresAt == first.expiresAt.addingTimeInterval(3241))
    #expect(fetches.withLock { $0 } == 2)
  }

  @Test("a caller that is cancelled does not wait for the token; the others get it")
  func cancelledCaller() async throws {
    let (gate, opens) = AsyncStream.makeStream(of: Void.self)
    let (begun, begins) = AsyncStream.makeStream(of: Void.self)
    let provider = TokenProvider {
      begins.finish()
      for await _ in gate {}
      return Self.token(lifetime: 3600, at: Date())
    }
    let first = Task { try await provider.token() }
    for await _ in begun {}
    let second = Task { try await provider.token() }
    first.cancel()
    await #expect(throws: CancellationError.self) { try await first.value }
    opens.finish()
    let token = try await second.value
    #expect(try await provider.token() == token)
  }

  @Test("many callers share one flight")
  func singleFlight() async throws {
    let fetches = Mutex(0)
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let provider = TokenProvider {
      fetches.withLock { $0 += 1 }
      for await _ in gate { break }
      return Self.token(lifetime: 60, at: Date())
    }
    let tokens = try await withThrowingTaskGroup(of: SharedAccessSignature.self) { group in
      for _ in 0..<20 { group.addTask { try await provider.token() } }
      opener.yield()
      opener.finish()
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(tokens.count == 1)
    #expect(fetches.withLock { $0 } == 1)
  }

  @Test("while the old token holds, a failing renewal does no harm")
  func failingRenewal() async throws {
    let clock = ManualClock()
    let fails = Mutex(false)
    let provider = TokenProvider(
      now: { clock.now },
      fetch: {
        if fails.withLock({ $0 }) { throw Refused() }
        return Self.token(lifetime: 100, at: clock.now)
      })
    let first = try await provider.token()
    fails.withLock { $0 = true }
    clock.advance(by: 95)
    #expect(try await provider.token() == first)
    clock.advance(by: 5)
    await #expect(throws: Refused.self) { try await provider.token() }
    fails.withLock { $0 = false }
    #expect(try await provider.token() != first)
  }

  @Test("a refused token is forgotten, another one is not")
  func invalidation() async throws {
    let clock = ManualClock()
    let provider = TokenProvider(
      now: { clock.now }, fetch: { Self.token(lifetime: 100, at: clock.now) })
    let first = try await provider.token()
    await provider.invalidate(Self.token(lifetime: 5, at: clock.now))
    #expect(try await provider.token() == first)
    await provider.invalidate(first)
    clock.advance(by: 1)
    #expect(try await provider.token() != first)
  }

  @Test("a key's tokens are signed for the hub, in lower case and without the port")
  func keyedTokens() async throws {
    let clock = ManualClock()
    let connection = ConnectionString(
      endpoint: ServiceEndpoint(host: "Contoso.example", port: 8443), keyName: "n", key: "k")
    let provider = TokenProvider(connectionString: connection, hub: "MyHub", now: { clock.now })
    let token = try await provider.token()
    #expect(token.rawResource.percentDecoded == "https://contoso.example/myhub")
    #expect(token.isSigned(with: "k"))
    #expect(token.expiresAt == clock.now.addingTimeInterval(1200))
  }
}
