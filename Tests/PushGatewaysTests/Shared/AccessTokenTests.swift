import Foundation
import HTTPClient
import HTTPServer
import HubCore
import HubTesting
import NotificationHubs
import Synchronization
import Testing
import Wire

@testable import PushGateways

@Suite("Access tokens", .timeLimit(.minutes(5)))
struct AccessTokenTests {
  private let clock = ManualClock()

  /// A token service that counts, and fails when told to.
  private final class Service: Sendable {
    let state = Mutex((asked: 0, failure: AccessTokenFailure?.none))
    let gate = Gate()

    func source(_ clock: ManualClock, life: TimeInterval = 3600) -> AccessTokenSource {
      AccessTokenSource(clock: clock.hubClock, margin: .seconds(600)) {
        await self.gate.wait()
        return self.state.withLock { state in
          state.asked += 1
          if let failure = state.failure { return .failure(failure) }
          return .success(
            AccessToken(text: "token \(state.asked)", expiresAt: clock.now + life))
        }
      }
    }

    var asked: Int { state.withLock { $0.asked } }
    func fail(_ failure: AccessTokenFailure?) { state.withLock { $0.failure = failure } }
  }

  @Test("all who need a token at once share one fetch")
  func singleFlight() async throws {
    let service = Service()
    let source = service.source(clock)
    let tokens = try await withThrowingTaskGroup(of: AccessToken.self) { group in
      for _ in 0..<20 { group.addTask { try await source.current() } }
      service.gate.open()
      return try await group.reduce(into: Set()) { $0.insert($1) }
    }
    #expect(tokens.map(\.text) == ["token 1"])
    #expect(service.asked == 1)
  }

  @Test("a token is renewed when less than the margin is left")
  func renewal() async throws {
    let service = Service()
    service.gate.open()
    let source = service.source(clock)
    #expect(try await source.current().text == "token 1")
    clock.advance(by: .seconds(2999))
    #expect(try await source.current().text == "token 1")
    clock.advance(by: .seconds(1))
    #expect(try await source.current().text == "token 2")
  }

  @Test("a token with a life shorter than the margin is used for half of it")
  func shortLife() async throws {
    let service = Service()
    service.gate.open()
    let source = service.source(clock, life: 100)
    _ = try await source.current()
    clock.advance(by: .seconds(49))
    #expect(try await source.current().text == "token 1")
    clock.advance(by: .seconds(1))
    #expect(try await source.current().text == "token 2")
  }

  @Test("while renewing fails the old token is used to its end, with a try now and then")
  func outage() async throws {
    let service = Service()
    service.gate.open()
    let source = service.source(clock)
    _ = try await source.current()
    service.fail(AccessTokenFailure(.unreachable, "down"))
    clock.advance(by: .seconds(3000))
    for _ in 0..<5 { #expect(try await source.current().text == "token 1") }
    #expect(service.asked == 2)
    clock.advance(by: .seconds(30))
    #expect(try await source.current().text == "token 1")
    #expect(service.asked == 3)
    clock.advance(by: .seconds(570))
    await #expect(throws: AccessTokenFailure(.unreachable, "down")) { try await source.current() }
    service.fail(nil)
    #expect(try await source.current().text == "token 5")
  }

  @Test("only the token that was refused is thrown away")
  func invalidation() async throws {
    let service = Service()
    service.gate.open()
    let source = service.source(clock)
    let first = try await source.current()
    source.invalidate(first)
    let second = try await source.current()
    #expect(second.text == "token 2")
    source.invalidate(first)
    #expect(try await source.current() == second)
    #expect(!"\(second)".contains(second.text))
  }

  @Test(
    "what a failure means for the pushes that needed the token",
    arguments: [
      (AccessTokenFailure.Kind.refused, NotificationOutcome.invalidCredentials),
      (.unreachable, .tokenProviderUnreachable), (.notUnderstood, .tokenProviderInterfaceError),
    ])
  func meaning(kind: AccessTokenFailure.Kind, outcome: NotificationOutcome) {
    let result = AccessTokenFailure(kind, "why").result
    #expect(result.outcome == outcome)
    #expect(result.handle == .keep)
    #expect(result.retry == (kind == .refused ? .pauseCredential : .backoff))
  }

  @Test(
    "what a token service's reply is read as",
    arguments: [
      (200, #"{"access_token":"a.b-c","token_type":"bearer","expires_in":86400}"#, "a.b-c 86400"),
      (200, #"{"access_token":"t","expires_in":"120"}"#, "t 120"),
      (200, #"{"access_token":"t"}"#, "t 3600"),
      (200, #"{"access_token":"t","expires_in":1e99}"#, "t 31536000"),
      (200, #"{"access_token":"t","expires_in":-5}"#, "notUnderstood"),
      (200, #"{"access_token":"a\r\nX: y","expires_in":60}"#, "notUnderstood"),
      (200, #"{"access_token":""}"#, "notUnderstood"), (200, #"{"access_to"#, "notUnderstood"),
      (200, "", "notUnderstood"), (204, "", "notUnderstood"), (302, "", "notUnderstood"),
      (400, #"{"error":"invalid_client","error_description":"x"}"#, "refused invalid_client"),
      (400, #"{"reason":"invalid_scope"}"#, "refused invalid_scope"),
      (401, "<html>", "refused token service: status 401"),
      (400, #"{"error":{"a":1}}"#, "refused token service: status 400"),
      (500, #"{"error":"server_error"}"#, "notUnderstood"), (503, "", "notUnderstood 7"),
      (429, "", "notUnderstood 7"),
    ])
  func replies(status: Int, body: String, expected: String) async throws {
    try await withSecureServer { request in
      #expect(request.headers["content-type"] == "application/x-www-form-urlencoded")
      #expect(String(decoding: request.body, as: UTF8.self) == "scope=a%3Ab")
      var response = HTTPResponse(
        HTTPStatus(rawValue: status), body: .bytes(Array(body.utf8)))
      if status == 503 || status == 429 { response.headers["Retry-After"] = "7" }
      return response
    } body: { server in
      let service = TokenEndpoint(
        url: server.url("/token"), session: server.session, clock: clock.hubClock)
      switch await service.token([("scope", "a:b")]) {
      case .success(let token):
        let life = Int(token.expiresAt.timeIntervalSince(clock.now))
        #expect("\(token.text) \(life)" == expected)
      case .failure(let failure):
        let words = expected.split(separator: " ", maxSplits: 1)
        #expect("\(failure.kind)" == words[0])
        #expect(failure.status == UInt16(status))
        if failure.kind == .refused { #expect(failure.reason == words[1]) }
        if words.count > 1, failure.kind == .notUnderstood { #expect(failure.retryAfter == 7) }
      }
    }
  }

  @Test("a token service that is not there is unreachable")
  func nobody() async throws {
    let service = TokenEndpoint(
      url: "https://nowhere.invalid/token", session: HTTPSession(), clock: clock.hubClock)
    guard case .failure(let failure) = await service.token([]) else {
      Issue.record("there is no such host")
      return
    }
    #expect(failure.kind == .unreachable)
  }

  @Test("forms are encoded as the vendors' vectors say", arguments: try Vectors.forms())
  func forms(form: Vectors.Form) {
    let fields = form.fields.map { (name: $0[0], value: $0[1]) }
    #expect(String(decoding: PercentEncoding.form(fields), as: UTF8.self) == form.body)
  }
}
