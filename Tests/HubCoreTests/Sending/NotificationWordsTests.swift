import HubCore
import NotificationHubs
import Testing

@Suite("The words of a notification, as lists show them")
struct NotificationWordsTests {
  private func words(_ format: String, _ body: String) -> NotificationSummary {
    var summary = NotificationSummary(
      notificationID: "n", state: .completed, kind: .tag, format: format)
    summary.read(Array(body.utf8))
    return summary
  }

  @Test(
    "are those that a device shows",
    arguments: [
      ("apple", #"{"aps":{"alert":{"title":"T","subtitle":"S","body":"B"}}}"#, "T", "B"),
      ("apple", #"{"aps":{"alert":"B"}}"#, nil, "B"),
      ("apple", #"{"aps":{"alert":{"title-loc-key":"GOAL","loc-key":"LEADS"}}}"#, "GOAL", "LEADS"),
      ("fcmv1", #"{"message":{"notification":{"title":"T","body":"B"}}}"#, "T", "B"),
      ("fcmv1", #"{"message":{"data":{"title":"T","message":"B"}}}"#, "T", "B"),
      ("browser", #"{"title":"T","body":"B"}"#, "T", "B"), ("browser", "plain", nil, "plain"),
      (
        "windows",
        "<toast><visual><binding><text>T &lt;1&gt;</text><text id=\"2\">B</text></binding></visual></toast>",
        "T <1>", "B"
      ),
      ("adm", #"{"data":{"title":"T","message":"B"}}"#, "T", "B"),
      ("baidu", #"{"title":"T","description":"B"}"#, "T", "B"),
      ("xiaomi", #"{"title":"T","description":"B","payload":"P"}"#, "T", "B"),
      ("template", #"{"TITLE":"T","Message":"B","other":"x"}"#, "T", "B"),
      ("template", #"{"alert":7}"#, nil, "7"),
    ] as [(String, String, String?, String?)])
  func read(format: String, body: String, title: String?, text: String?) {
    let summary = words(format, body)
    #expect(summary.title == title && summary.text == text, "\(summary)")
    #expect(summary.textState == .kept)
  }

  @Test(
    "are none of a sealed message, wherever its platform has it",
    arguments: [
      ("apple", #"{"aps":{"alert":"You have a message"},"secureId":"i","sealed":"s"}"#),
      ("fcmv1", #"{"message":{"data":{"secureId":"i","sealed":"s","title":"T"}}}"#),
      ("adm", #"{"data":{"secureId":"i","sealed":"s","alert":"A"}}"#),
      ("browser", #"{"title":"T","secureId":"i","sealed":"s"}"#),
      ("windows", #"{"secureId":"i","sealed":"s"}"#),
      (
        "xiaomi",
        #"{"payload":"{\"secureId\":\"i\",\"sealed\":\"s\"}","title":"T","description":"D"}"#
      ),
      ("baidu", #"{"secureId":"i","sealed":"s","title":"T"}"#),
    ])
  func sealed(format: String, body: String) {
    let summary = words(format, body)
    #expect(summary.title == nil && summary.text == nil && summary.textState == .sealed)
  }

  @Test("are none of a push for the app, and unknown where a template names others")
  func silent() {
    #expect(words("apple", #"{"aps":{"content-available":1}}"#).textState == .silent)
    #expect(words("fcmv1", #"{"message":{"data":{"refresh":"x"}}}"#).textState == .silent)
    let other = words("template", #"{"secret":"x"}"#)
    #expect(other.textState == nil && other.title == nil && other.text == nil)
    // Nobody knows how a retired service showed it.
    #expect(words("gcm", #"{"data":{"message":"B"}}"#).textState == nil)
  }

  @Test("are cut after 200 characters, not within one")
  func length() {
    let family = String(repeating: "👩‍👩‍👧", count: 201)
    let summary = words("template", #"{"title":"\#(family)","message":"x"}"#)
    #expect(summary.title == String(repeating: "👩‍👩‍👧", count: 200))
  }
}
