import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("The tables of replies")
struct ReplyTableTests {
  @Test(
    "each has exactly the specification's rows",
    arguments: [
      ("wns", WNSReply.all), ("adm", ADMReply.all), ("baidu", BaiduReply.all),
      ("xiaomi", XiaomiReply.all), ("mpns", MPNSReply.all), ("gcm", GCMReply.all),
    ])
  func rows(name: String, rules: [ReplyRule]) throws {
    let ours = rules.map {
      [$0.status, $0.reason, $0.retry.rawValue, $0.handle.rawValue, $0.outcome.name]
    }
    let theirs = try Vectors.rows(name).filter { !$0.status.hasPrefix("token") }.map {
      [$0.status, $0.reason, $0.retry, $0.handle, $0.outcome]
    }
    #expect(ours.count == theirs.count)
    #expect(Set(ours) == Set(theirs))
  }

  @Test(
    "the rows of the token services are the shared source's",
    arguments: try ["wns", "adm"].flatMap { try Vectors.rows($0) }
      .filter { $0.status.hasPrefix("token") })
  func tokenRows(row: Vectors.Row) {
    let kind: AccessTokenFailure.Kind =
      switch row.status {
      case "token 400|401": .refused
      case "token 5xx": .notUnderstood
      default: .unreachable
      }
    let result = AccessTokenFailure(kind, "").result
    #expect(result.outcome.name == row.outcome)
    #expect(result.retry == (row.retry == "backoff" ? .backoff : .pauseCredential))
    #expect(result.handle == .keep)
  }
}

/// What a row asks the hub to do when nothing more can be done at once.
func expectRow(_ row: Vectors.Row, _ result: PushResult) {
  #expect(result.outcome.name == row.outcome)
  let advice: RetryAdvice =
    switch row.retry {
    case "backoff": .backoff
    case "pause-credential", "refresh-once": .pauseCredential
    default: .final
    }
  #expect(result.retry == advice)
  let handle: HandleAction =
    switch row.handle {
    case "remove": .remove
    case "replace": .replace
    default: .keep
    }
  #expect(result.handle == handle)
}
