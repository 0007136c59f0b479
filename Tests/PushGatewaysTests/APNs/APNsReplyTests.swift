import HTTP2
import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("The table of APNs replies")
struct APNsReplyTests {
  @Test("it has exactly the specification's rows")
  func rows() {
    let ours = APNsReply.all.map {
      [$0.status, $0.reason, $0.retry.rawValue, $0.handle.rawValue, $0.outcome.name]
    }
    let theirs = APNsFixture.all.apnsTable.map {
      [$0.status.word, $0.reason, $0.retry, $0.handle, $0.outcome]
    }
    #expect(ours.count == theirs.count)
    #expect(Set(ours) == Set(theirs))
  }

  @Test("a row is found by its reason in an answer", arguments: APNsFixture.all.apnsTable)
  func lookup(row: APNsFixture.Row) throws {
    guard let status = UInt16(row.status.word), status != 200 else { return }
    let body = Array(#"{"reason":"\#(row.reason)"}"#.utf8)
    let verdict = APNsReply.verdict(status: status, body: body[...])
    #expect(verdict.rule.outcome.name == row.outcome)
    #expect(verdict.rule.retry.rawValue == row.retry)
    #expect(verdict.rule.handle.rawValue == row.handle)
    #expect(verdict.reason == row.reason)
    #expect(verdict.status == status)
  }

  @Test("the vectors' answers have their outcome and removal", arguments: APNsFixture.all.replies)
  func answers(example: APNsFixture.Answer) {
    let verdict = APNsReply.verdict(status: example.status, body: Array(example.body.utf8)[...])
    let result = verdict.result(confirmedAt: example.handleStoredAtMs ?? 0, isOwnTopic: true)
    #expect(result.outcome.name == example.outcome)
    #expect((result.handle == .remove) == example.remove)
  }

  @Test(
    "without a readable reason the status decides",
    arguments: [
      (200, NotificationOutcome.success, RetryAdvice.final), (400, .unknownError, .final),
      (403, .invalidCredentials, .pauseCredential), (404, .pnsInterfaceError, .final),
      (405, .pnsInterfaceError, .final), (410, .expiredChannel, .final),
      (413, .invalidNotificationSize, .final), (418, .unknownError, .final),
      (429, .throttled, .backoff), (500, .pnsServerError, .backoff),
      (503, .pnsServerError, .backoff), (302, .pnsInterfaceError, .final),
      (0, .pnsInterfaceError, .final),
    ] as [(UInt16, NotificationOutcome, RetryAdvice)])
  func fallback(status: UInt16, outcome: NotificationOutcome, advice: RetryAdvice) {
    for body in [
      "", "<html>", "{", "[]", #"{"reason":7}"#, #"{"reason":""}"#, "{\"reason\":\"a b\"}",
    ] {
      let verdict = APNsReply.verdict(status: status, body: Array(body.utf8)[...])
      let result = verdict.result(confirmedAt: 1, isOwnTopic: true)
      #expect(result.outcome == outcome)
      #expect(result.retry == advice)
      #expect(result.status == status)
    }
  }

  @Test("an unknown word of the 5xx group is Apple's fault, of the 4xx group unknown")
  func unknownWords() {
    let body = Array(#"{"reason":"Novelty"}"#.utf8)[...]
    #expect(APNsReply.verdict(status: 502, body: body).rule == APNsReply.otherServerError)
    #expect(APNsReply.verdict(status: 409, body: body).rule == APNsReply.otherClientError)
    #expect(APNsReply.verdict(status: 409, body: body).reason == "Novelty")
  }

  @Test("a 410 removes only a handle that was confirmed before Apple's time")
  func removeIfOlder() {
    let body = Array(#"{"reason":"Unregistered","timestamp":1000}"#.utf8)[...]
    let verdict = APNsReply.verdict(status: 410, body: body)
    #expect(verdict.result(confirmedAt: 999, isOwnTopic: true).handle == .remove)
    #expect(verdict.result(confirmedAt: 1000, isOwnTopic: true).handle == .keep)
    for text in [#""1000""#, "1e3", "null", "99999999999999999999"] {
      let odd = Array(#"{"reason":"Unregistered","timestamp":\#(text)}"#.utf8)[...]
      let result = APNsReply.verdict(status: 410, body: odd).result(
        confirmedAt: 5000, isOwnTopic: true)
      #expect(result.handle == .remove)
    }
  }

  @Test("a token for another topic goes only when the topic was our own")
  func foreignTopic() {
    let wrong = PushVerdict(APNsReply.notForTopic)
    #expect(wrong.result(confirmedAt: 0, isOwnTopic: true).handle == .remove)
    #expect(wrong.result(confirmedAt: 0, isOwnTopic: false).handle == .keep)
    let gone = PushVerdict(APNsReply.unregistered)
    #expect(gone.result(confirmedAt: 0, isOwnTopic: true).handle == .remove)
    #expect(gone.result(confirmedAt: 0, isOwnTopic: false).handle == .keep)
    let bad = PushVerdict(APNsReply.badDeviceToken)
    #expect(bad.result(confirmedAt: 0, isOwnTopic: false).handle == .remove)
  }

  @Test(
    "a failure of the transport has its row",
    arguments: [
      (HTTP2Failure.connectFailed, ReplyRule.unreachable), (.timedOut, .unreachable),
      (.connectionLost, .unreachable), (.cancelled, .unreachable),
      (.refused, APNsReply.streamRefused),
      (.reset(code: 8), APNsReply.streamRefused), (.reset(code: 2), .unreachable),
      (.tlsRejectedCertificate, APNsReply.certificateRejected),
    ])
  func transport(failure: HTTP2Failure, row: ReplyRule) {
    let verdict = APNsReply.verdict(failure: failure, goAway: nil, connectionError: nil)
    #expect(verdict.rule == row)
    #expect(verdict.status == 0)
  }

  @Test("a GOAWAY explains what was not processed, and nothing else")
  func goAway() {
    func verdict(_ failure: HTTP2Failure, _ text: String) -> ReplyRule {
      let goAway = HTTP2GoAway(lastStreamID: 0, code: 0, debugData: Array(text.utf8))
      return APNsReply.verdict(failure: failure, goAway: goAway, connectionError: nil).rule
    }
    #expect(verdict(.refused, #"{"reason":"BadCertificate"}"#).retry == .pauseCredential)
    #expect(verdict(.refused, #"{"reason":"ExpiredProviderToken"}"#).retry == .refreshOnce)
    #expect(verdict(.refused, #"{"reason":"Shutdown"}"#).reason == "Shutdown")
    #expect(verdict(.refused, #"{"reason":"BadDeviceToken"}"#) == APNsReply.streamRefused)
    #expect(verdict(.refused, "bye") == APNsReply.streamRefused)
    #expect(verdict(.connectionLost, #"{"reason":"Shutdown"}"#) == .unreachable)
  }
}
