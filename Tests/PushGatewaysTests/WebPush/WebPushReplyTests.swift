import NotificationHubs
import Testing

@testable import PushGateways

@Suite("The table of Web Push replies")
struct WebPushReplyTests {
  @Test("it has exactly the specification's rows")
  func table() {
    let ours = WebPushReply.all.map {
      [$0.status, $0.reason, $0.retry.rawValue, $0.handle.rawValue, $0.outcome.name]
    }
    let theirs = PushFixture.all.webPushRows.map {
      [$0.status, $0.reason, $0.retry, $0.handle, $0.outcome]
    }
    #expect(ours.count == theirs.count)
    #expect(Set(ours) == Set(theirs))
  }

  @Test("the vendors' words go into the reason, and nothing longer does")
  func words() {
    func reason(_ status: UInt16, _ body: String) -> String? {
      WebPushReply.verdict(status: status, body: Array(body.utf8)[...]).reason
    }
    #expect(reason(403, #"{"reason":"BadJwtToken"}"#) == "BadJwtToken")
    #expect(reason(410, #"{"code":410,"errno":103,"error":"x"}"#) == "status 410, errno 103")
    for body in ["", "<html>", "[]", #"{"reason":"a b"}"#, #"{"reason":""}"#] {
      #expect(reason(400, body) == "status 400")
    }
  }
}
