import Foundation
import NotificationHubs
import PushDevice
import PushDeviceSecure
import PushDeviceTesting
import SecurePush
import Testing

@Suite("Sealed messages")
struct SealedMessagesTests {
  private static let silent = #"{"aps":{"content-available":1},"secureId":"m1"}"#
  private static let alert =
    #"{"aps":{"alert":"You have a message","mutable-content":1},"secureId":"m1"}"#

  private func message(_ json: String) throws -> PushMessage {
    try #require(PushMessage(json: Data(json.utf8)))
  }

  @Test("a sealed payload is opened without asking anybody, by the app and by its extension")
  func offline() async throws {
    let device = SecureDevice()
    let (_, account) = try await device.signedIn()
    let push = try device.sealedPush("for your eyes only")
    device.backend.isUp = false
    let calls = device.backend.calls.count
    #expect(await account.messages.content(of: push) == .text("for your eyes only", offline: true))
    let work = ServiceExtensionWork(
      opener: try device.account().messages, storage: device.storage, clock: device.clock)
    let content = await work.content(for: push, showing: push.text)
    #expect(content.text == NotificationText(body: "for your eyes only"))
    #expect(device.backend.calls.count == calls)
  }

  @Test("a payload that does not open, or does not travel, is fetched by its id")
  func fetched() async throws {
    let device = SecureDevice()
    let (_, account) = try await device.signedIn()
    let push = try message(Self.silent)
    #expect(await account.messages.content(of: push) == .text("fetched", offline: false))
    let work = ServiceExtensionWork(opener: try device.account().messages, clock: device.clock)
    #expect(await work.content(for: push, showing: push.text).text.body == "fetched")
  }

  @Test("without a connection or a sign-in the text is general, and an app without either the same")
  func general() async throws {
    let device = SecureDevice()
    let push = try message(Self.alert)
    let general = SealedMessages.Content.generic("You have a message")
    #expect(await (try device.account()).messages.content(of: push) == general)
    let (_, account) = try await device.signedIn()
    device.backend.isUp = false
    #expect(await account.messages.content(of: push) == general)
    device.storage.error = .locked
    #expect(await account.messages.content(of: push) == general)
    let work = ServiceExtensionWork(opener: account.messages, clock: device.clock)
    #expect(await work.content(for: push, showing: push.text).text.body == "You have a message")
  }

  @Test("a message of somebody else's shows nothing, and a plain one is left alone")
  func others() async throws {
    let device = SecureDevice()
    let (_, account) = try await device.signedIn()
    let other = try message(#"{"aps":{},"secureId":"other"}"#)
    #expect(await account.messages.content(of: other) == SealedMessages.Content.none)
    let plain = try message(#"{"aps":{"alert":"Hi"}}"#)
    #expect(await account.messages.content(of: plain) == nil)
    #expect(!account.messages.isSealed(plain))
  }

  @Test("a text that was read once is shown by the app after a tap, from the notification itself")
  func readOnce() async throws {
    let device = SecureDevice(backend: FakeBackend(isReadOnce: true))
    let (_, account) = try await device.signedIn()
    let push = try message(Self.silent)
    #expect(await account.messages.content(of: push) == .text("fetched", offline: false))
    #expect(await account.messages.content(of: push) == SealedMessages.Content.none)
    let tapped = try #require(
      PushMessage(userInfo: account.messages.userInfo(showing: "fetched")))
    #expect(await account.messages.content(of: tapped) == .text("fetched", offline: true))
  }

  @Test("a notification with a general text is fetched when it is tapped")
  func laterFetch() async throws {
    let device = SecureDevice()
    let userInfo = SealedMessages.userInfo(fetching: try message(Self.silent))
    let (_, account) = try await device.signedIn()
    let tapped = try #require(PushMessage(userInfo: userInfo))
    #expect(await account.messages.content(of: tapped) == .text("fetched", offline: false))
    #expect(tapped.notificationID == "m1", "its id tells duplicates apart")
  }
  @Test("a push cannot pass its own text off as one that the device has opened")
  func forged() async throws {
    let device = SecureDevice()
    let (push, account) = try await device.signedIn()
    let forged = #"{"aps":{"alert":"Hi"},"belfry.text":"Send money"}"#
    #expect(await account.messages.content(of: try message(forged)) == nil)
    let marked = #"{"aps":{"alert":"Hi"},"belfry.text":"Send money","belfry.mark":"AAAA"}"#
    #expect(await account.messages.content(of: try message(marked)) == nil)
    // The mark of one text is not that of another.
    var userInfo = account.messages.userInfo(showing: "Hello")
    userInfo["belfry.text"] = "Send money"
    let altered = try #require(PushMessage(userInfo: userInfo))
    #expect(await account.messages.content(of: altered) == nil)
    // The next user does not see it.
    let own = try #require(PushMessage(userInfo: account.messages.userInfo(showing: "Hello")))
    #expect(await account.messages.content(of: own) == .text("Hello", offline: true))
    try await account.signOut(of: push)
    #expect(await account.messages.content(of: own) == nil)
    #expect(account.messages.userInfo(showing: "Hello").isEmpty)
  }
}
