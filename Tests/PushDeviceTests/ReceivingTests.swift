import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

@Suite("Receiving")
struct ReceivingTests {
  private func message(_ json: String) throws -> PushMessage {
    try #require(PushMessage(json: Data(json.utf8)))
  }

  @Test("a payload's texts, badge, sound and own members are read")
  func payload() throws {
    let push = try message(
      #"""
      {"aps":{"alert":{"title":"Tea","subtitle":"now","loc-key":"READY"},"badge":2,
       "sound":{"critical":1,"name":"gong.aiff"},"content-available":1},
       "notificationId":"n1","user":"anna","image":"https://example.com/tea.png","pot":2}
      """#)
    #expect(push.text == NotificationText(title: "Tea", subtitle: "now", body: "READY"))
    #expect(push.text.summary == "Tea – now – READY")
    #expect(push.badge == 2)
    #expect(push.sound == "gong.aiff")
    #expect(push.wakesApp && push.isVisible)
    #expect(push.notificationID == "n1")
    #expect(push.userID == "anna")
    #expect(push.image?.absoluteString == "https://example.com/tea.png")
    struct Own: Decodable { let pot: Int }
    #expect(try push.decode(Own.self).pot == 2)
  }

  @Test("a push without anything to see wakes the app")
  func silent() throws {
    let push = try message(#"{"aps":{"content-available":1}}"#)
    #expect(push.wakesApp && !push.isVisible)
    #expect(try message(#"{"aps":{"alert":"Hi"}}"#).text == NotificationText(body: "Hi"))
  }

  @Test(
    "what is no JSON object is no message",
    arguments: ["", "[]", "null", "{\"aps\"", "\u{FF}"])
  func noMessage(json: String) throws {
    #expect(PushMessage(json: Data(json.utf8)) == nil)
  }

  @Test("wrong members of a payload are absent ones")
  func wrongMembers() throws {
    let push = try message(
      #"{"aps":{"alert":7,"badge":"x","sound":[]},"user":1,"image":"http://example.com/a.png"}"#)
    #expect(!push.isVisible && push.userID == nil && push.image == nil)
    #expect(try message(#"{"aps":7}"#).isVisible == false)
  }

  @Test("a notification's userInfo is a message, unless it is not JSON")
  func userInfo() throws {
    let push = PushMessage(userInfo: ["aps": ["alert": "Hi"], "user": "anna"])
    #expect(push?.text.body == "Hi")
    #expect(push?.userID == "anna")
    let keys = (1...20).map { "key\($0)" }
    let dictionary = Dictionary(uniqueKeysWithValues: keys.map { ($0, 1) })
    let reversed = Dictionary(uniqueKeysWithValues: keys.reversed().map { ($0, 1) })
    #expect(PushMessage(userInfo: dictionary) == PushMessage(userInfo: reversed))
    #expect(PushMessage(userInfo: [1: 2]) == nil)
    #expect(PushMessage(userInfo: ["date": Date()]) == nil)
  }

  @Test("a tap at a cold start waits for the first listener, who gets it once")
  func coldStart() async throws {
    let events = PushEvents()
    let tap = PushEvent.opened(try message(#"{"aps":{"alert":"Hi"}}"#))
    let reply = PushEvent.action("REPLY", try message("{}"), text: "Yes")
    events.deliver(tap)
    var first = events.events.makeAsyncIterator()
    var second = events.events.makeAsyncIterator()
    events.deliver(reply)
    #expect(await first.next() == tap)
    #expect(await first.next() == reply)
    #expect(await second.next() == reply)
  }

  @Test("of many events without a listener the latest 100 wait")
  func waitingLimit() async throws {
    let events = PushEvents()
    for number in 1...150 { events.deliver(.opened(try message(#"{"n":\#(number)}"#))) }
    var listener = events.events.makeAsyncIterator()
    #expect(await listener.next() == .opened(try message(#"{"n":51}"#)))
  }

  @Test("a duplicate is recognized among the last 200, over launches, and while locked")
  func duplicates() async throws {
    let storage = FakeStorage()
    let events = PushEvents(storage: storage)
    let first = try message(#"{"notificationId":"1"}"#)
    #expect(await events.isNew(first))
    #expect(await !events.isNew(first))
    #expect(await !PushEvents(storage: storage).isNew(first))
    for number in 2...201 {
      #expect(await events.isNew(try message(#"{"notificationId":"\#(number)"}"#)))
    }
    #expect(await events.isNew(first))
    storage.error = .locked
    let locked = PushEvents(storage: storage)
    #expect(await locked.isNew(first))
    #expect(await !locked.isNew(first))
    storage.error = nil
    storage[.seenNotifications] = Data("damaged".utf8)
    #expect(await PushEvents(storage: storage).isNew(first))
    let unnamed = try message("{}")
    #expect(await events.isNew(unnamed))
    #expect(await events.isNew(unnamed))
  }
  @Test(
    "events of another user's messages are dropped, also while nobody can tell who is signed in")
  func anotherUser() async throws {
    let device = TestDevice()
    let app = device.process()
    try await app.signIn(as: "anna")
    let events = PushEvents(storage: device.storage)
    var listener = events.events.makeAsyncIterator()
    let forAnna = try message(#"{"aps":{"alert":"For you"},"user":"anna"}"#)
    let forAll = try message(#"{"aps":{"alert":"For all"}}"#)
    #expect(events.isForThisDevice(forAnna))
    try await app.signOut()
    events.deliver(.opened(forAnna))
    events.deliver(.opened(forAll))
    #expect(await listener.next() == .opened(forAll))
    #expect(!events.isForThisDevice(forAnna))
    device.storage.error = .locked
    #expect(!events.isForThisDevice(forAnna) && events.isForThisDevice(forAll))
  }

  @Test("a sign-out forgets which notifications the user has seen")
  func seenAfterSignOut() async throws {
    let device = TestDevice()
    let app = device.process()
    try await app.signIn(as: "anna")
    #expect(
      await PushEvents(storage: device.storage).isNew(try message(#"{"notificationId":"1"}"#)))
    #expect(device.storage[.seenNotifications] != nil)
    try await app.signOut()
    #expect(device.storage[.seenNotifications] == nil)
  }
}
