import Foundation
import HubCore
import NotificationHubs
import Testing

@testable import HubStorage

@Suite("The stored form of an installation")
struct InstallationDocumentTests {
  /// Version, no user, browser, the form of the channel, its three texts, and nothing else.
  private static func bytes(form: UInt8) -> [UInt8] {
    [1, 0, 8, form] + [1, 0x65, 1, 0x70, 1, 0x61] + [0, 0, 0, 0, 0, 0]
  }

  @Test(
    "of a subscription tells how it was written; older documents all say as an object",
    arguments: [(UInt8(1), false), (2, true)])
  func subscriptionForms(form: UInt8, isText: Bool) throws {
    var installation = Installation(
      installationID: "i", platform: .browser,
      pushChannel: .subscription(endpoint: "e", p256dh: "p", auth: "a"))
    installation.writesSubscriptionAsText = isText
    let bytes = Self.bytes(form: form)
    let none: (Int64) throws -> PushTemplate = { throw StoreError.corrupt("no template \($0)") }
    #expect(
      try InstallationDocument.decode(bytes, id: "i", template: none) == installation)
    #expect(InstallationDocument.encode(installation) { _ in 0 } == bytes)
    #expect(throws: StoreError.self) {
      try InstallationDocument.decode(Self.bytes(form: 3), id: "i", template: none)
    }
  }
}
