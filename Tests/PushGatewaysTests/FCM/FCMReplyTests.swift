import HubCore
import NotificationHubs
import Testing

@testable import PushGateways

@Suite("The table of FCM replies")
struct FCMReplyTests {
  private static let rows = PushFixture.all.fcmRows.filter { !$0.status.hasPrefix("token") }

  @Test("it has exactly the specification's rows")
  func table() {
    let ours = FCMReply.all.map {
      [$0.status, $0.reason, $0.retry.rawValue, $0.handle.rawValue, $0.outcome.name]
    }
    let theirs = Self.rows.map { [$0.status, $0.reason, $0.retry, $0.handle, $0.outcome] }
    #expect(ours.count == theirs.count)
    #expect(Set(ours) == Set(theirs))
  }

  /// An answer as FCM words it for a row of the table.
  private func answer(_ row: Vectors.Row) -> (UInt16, String)? {
    let status = UInt16(row.status) ?? ["any": 400, "4xx": 418, "5xx": 504][row.status]
    guard let status else { return nil }
    func document(_ word: String, _ text: String = "m", _ details: String = "") -> String {
      #"{"error":{"code":\#(status),"message":"\#(text)","status":"\#(word)","details":[\#(details)]}}"#
    }
    func detail(_ code: String) -> String {
      #"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(code)"}"#
    }
    let text =
      switch row.reason {
      case "": ""
      case "INVALID_ARGUMENT:token":
        document(
          "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token",
          detail("INVALID_ARGUMENT"))
      case "INVALID_ARGUMENT:size":
        document("INVALID_ARGUMENT", "Android message is too big", detail("INVALID_ARGUMENT"))
      case "INVALID_ARGUMENT":
        document(
          "INVALID_ARGUMENT", "Invalid value",
          #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.android.ttl","description":"d"}]}"#
        )
      case "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND": document(row.reason)
      case "(other)": document("NOVELTY", "m", detail("NOVELTY"))
      default: document("ANYTHING", "m", detail(row.reason))
      }
    return (status, text)
  }

  @Test("a row is found by an answer as FCM words it", arguments: rows)
  func lookup(row: Vectors.Row) throws {
    guard let (status, body) = answer(row) else { return }
    let verdict = FCMReply.verdict(status: status, body: Array(body.utf8)[...])
    #expect(verdict.rule.outcome.name == row.outcome)
    #expect(verdict.rule.retry.rawValue == row.retry)
    #expect(verdict.rule.handle.rawValue == row.handle)
    #expect(verdict.result.status == status)
  }

  @Test(
    "the vectors' answers have their outcome and removal", arguments: PushFixture.all.fcmReplies)
  func answers(example: PushFixture.Answer) {
    let result = FCMReply.verdict(status: example.status, body: Array(example.body.utf8)[...])
      .result
    #expect(result.outcome.name == example.outcome)
    #expect((result.handle == .remove) == example.remove)
  }

  @Test(
    "the rows of the token service are those of the shared access tokens",
    arguments: PushFixture.all.fcmRows.filter { $0.status.hasPrefix("token") })
  func tokenRows(row: Vectors.Row) {
    let kind: AccessTokenFailure.Kind =
      switch row.status {
      case "token 5xx": .notUnderstood
      case "token transport": .unreachable
      default: .refused
      }
    let result = AccessTokenFailure(kind, "x").result
    #expect(result.outcome.name == row.outcome)
    #expect((result.retry == .pauseCredential) == (row.retry == "pause-credential"))
    #expect(result.handle == .keep)
  }

  @Test(
    "without a readable word the status decides, and no handle goes",
    arguments: [
      (400, NotificationOutcome.invalidNotificationFormat), (401, .invalidCredentials),
      (403, .invalidCredentials), (404, .invalidCredentials), (429, .throttled),
      (500, .pnsServerError), (502, .pnsServerError), (503, .pnsUnavailable),
      (302, .unknownError), (418, .unknownError), (0, .unknownError),
    ] as [(UInt16, NotificationOutcome)])
  func fallback(status: UInt16, outcome: NotificationOutcome) {
    for body in ["", "<html>", "{", "[]", #"{"error":7}"#, #"{"error":{"details":7}}"#] {
      let result = FCMReply.verdict(status: status, body: Array(body.utf8)[...]).result
      #expect(result.outcome == outcome)
      #expect(result.handle == .keep)
    }
  }

  @Test("an argument fault that does not name the token leaves the handle alone")
  func doubt() {
    let texts = [
      #"{"error":{"status":"INVALID_ARGUMENT","message":"registration token? no detail"}}"#,
      #"{"error":{"status":"INVALID_ARGUMENT","message":"x","details":[{"@type":"a/google.firebase.fcm.v1.FcmError","errorCode":"INVALID_ARGUMENT"}]}}"#,
    ]
    for text in texts {
      #expect(
        FCMReply.verdict(status: 400, body: Array(text.utf8)[...]).rule == FCMReply.badArgument)
    }
    let named =
      #"{"error":{"status":"INVALID_ARGUMENT","message":"x","details":[{"@type":"a/google.rpc.BadRequest","fieldViolations":[{"field":"message.token"}]}]}}"#
    #expect(FCMReply.verdict(status: 400, body: Array(named.utf8)[...]).rule == FCMReply.badToken)
  }
}
