import Foundation
import HubCore
import NotificationHubs
import Testing

/// docs/protocol/rest.md, section 4.6.
@Suite("The registrations of an installation")
struct RegistrationDraftTests {
  private static let expiry = Date(timeIntervalSince1970: 1_900_000_000)

  private static func windows() -> Installation {
    Installation(
      installationID: "i-1", userID: "bob", platform: .wns,
      pushChannel: .handle("https://h/main"), expirationTime: expiry, tags: ["red", "MAIN"],
      pushVariables: ["city": "Oslo"],
      templates: [
        "b": PushTemplate(
          body: "{}", headers: ["X-WNS-Type": "wns/raw"], tags: ["RED", "own", "b"]),
        "Main": PushTemplate(body: "<toast/>", expiry: "$(when)"),
      ],
      secondaryTiles: [
        "weather": SecondaryTile(
          pushChannel: "https://h/tile", tags: ["sun"],
          templates: ["w": PushTemplate(body: "<tile/>", tags: ["rain"])])
      ])
  }

  @Test("are a native one, one for each template, and the same for each tile")
  func registrations() {
    let drafts = Self.windows().registrationDrafts
    #expect(drafts.count == 5)
    let common: [String] = ["$InstallationId:{i-1}", "$UserId:{bob}", "red", "MAIN"]
    #expect(
      drafts.map { $0.tags.map(\.rawValue) } == [
        common, common, common + ["own", "b"], common + ["sun"], common + ["sun", "rain", "w"],
      ])
    #expect(
      drafts.map(\.kind) == [
        .native, .template(PushTemplate(body: "<toast/>", expiry: "$(when)"), name: "Main"),
        .template(
          PushTemplate(body: "{}", headers: ["X-WNS-Type": "wns/raw"]), name: "b"),
        .native, .template(PushTemplate(body: "<tile/>"), name: "w"),
      ])
    #expect(
      drafts.map(\.channel.handle) == [
        "https://h/main", "https://h/main", "https://h/main", "https://h/tile", "https://h/tile",
      ])
    #expect(drafts.map(\.secondaryTileName) == [nil, nil, nil, "weather", "weather"])
    #expect(drafts.allSatisfy { $0.platform == .wns && $0.expiresAt == Self.expiry })
    #expect(drafts.allSatisfy { $0.pushVariables == ["city": "Oslo"] })
  }

  @Test("carry no user tag without a user")
  func withoutUser() {
    let installation = Installation(
      installationID: "i-1", platform: .apns, pushChannel: .handle("00"))
    #expect(
      installation.registrationDrafts == [
        RegistrationDraft(
          kind: .native, platform: .apns, channel: .handle("00"), tags: ["$InstallationId:{i-1}"])
      ])
  }

  @Test("leave out a channel that is dead, whichever it is")
  func deadChannels() {
    var installation = Self.windows()
    installation.pushChannelExpired = true
    #expect(installation.registrationDrafts.map(\.secondaryTileName) == ["weather", "weather"])
    installation.pushChannelExpired = false
    installation.secondaryTiles["weather"]?.pushChannelExpired = true
    #expect(installation.registrationDrafts.map(\.secondaryTileName) == [nil, nil, nil])
  }
}
