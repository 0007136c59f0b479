import Foundation
import NotificationHubs
import Testing

@testable import SecurePush

@Suite("The message that travels through the push service")
struct SecureMessageTests {
  @Test("without a sealed payload it is the tutorial's wake-up, byte for byte")
  func tutorial() throws {
    let message = SecureMessage(id: "a-1_Z")
    let apple = try #require(message.notification(for: .apns))
    #expect(text(apple) == #"{"aps":{"content-available":1},"secureId":"a-1_Z"}"#)
    #expect(apple.headers == ["apns-push-type": "background", "apns-priority": "5"])
    #expect(
      try text(#require(message.notification(for: .gcm))) == #"{"data":{"secureId":"a-1_Z"}}"#)
    #expect(
      try text(#require(message.notification(for: .fcmv1)))
        == #"{"message":{"data":{"secureId":"a-1_Z"},"android":{"priority":"HIGH"}}}"#)
    let windows = try #require(message.notification(for: .wns))
    #expect(text(windows) == "a-1_Z")
    #expect(windows.headers == ["X-WNS-Type": "wns/raw"])
    #expect(message.notification(for: .mpns) == nil)
  }

  @Test("as an alert it shows a general text, which the app may replace")
  func alert() throws {
    let apple = try #require(
      SecureMessage(id: "m").notification(for: .apns, as: .alert(SecureMessage.genericAlert)))
    #expect(
      text(apple)
        == #"{"aps":{"alert":{"body":"You have a message"},"mutable-content":1,"sound":"default"},"#
        + #""secureId":"m"}"#)
    #expect(apple.headers == ["apns-push-type": "alert", "apns-priority": "10"])
  }

  @Test("the device reads back id and sealed payload", arguments: PushPlatform.allCases)
  func reading(_ platform: PushPlatform) throws {
    let ring = try SealingKeyRing()
    let recipient = SealingRecipient(
      installationID: "phone", publicKey: ring.current.publicKey)
    for payload in [nil, Data("secret".utf8)] {
      let message = SecureMessage(
        id: "m1", sealed: try payload.map { try seal($0, id: "m1", for: recipient) })
      guard let notification = message.notification(for: platform, as: .alert("Hello")) else {
        #expect(platform == .mpns)
        continue
      }
      // Xiaomi hands its app the text inside.
      var body = notification.body
      if platform == .xiaomi {
        let document = try #require(
          try JSONSerialization.jsonObject(with: body) as? [String: Any])
        body = Data(try #require(document["payload"] as? String).utf8)
      }
      #expect(SecureMessage(payload: body) == message)
    }
  }

  @Test(
    "what is no secure message is not taken for one",
    arguments: [
      "", "{}", #"{"aps":{"alert":"Hello"}}"#, #"{"secureId":7}"#, #"{"secureId":""}"#,
      #"{"secureId":"../../users"}"#, #"{"secureId":"a b"}"#, "not json at all",
      "[\"secureId\"]", "{\"secureId\":\"\(String(repeating: "a", count: 129))\"}",
    ])
  func others(_ payload: String) {
    #expect(SecureMessage(payload: Data(payload.utf8)) == nil)
  }

  @Test("a sealed payload that does not fit is left out: the device fetches it by id")
  func fitting() throws {
    let key = try SealingKey().publicKey
    let recipient = SealingRecipient(installationID: "phone", publicKey: key)
    for platform in PushPlatform.allCases where platform != .mpns {
      let small = SecureMessage(
        id: "m", sealed: try seal(Data(count: 100), id: "m", for: recipient))
      #expect(small.fitting(platform) == small)
      let large = SecureMessage(
        id: "m", sealed: try seal(Data(count: 5_000), id: "m", for: recipient))
      #expect(large.fitting(platform) == SecureMessage(id: "m"))
    }
    // The last byte that fits.
    var count = 2_500
    var fits = SecureMessage(id: "m")
    while true {
      let next = SecureMessage(
        id: "m", sealed: try seal(Data(count: count + 1), id: "m", for: recipient))
      guard next.fitting(.apns) == next else { break }
      fits = next
      count += 1
    }
    let body = try #require(fits.notification(for: .apns)).body
    #expect((4_093...4_096).contains(body.count))
  }

  private func text(_ notification: PushNotification) -> String {
    String(decoding: notification.body, as: UTF8.self)
  }
}
