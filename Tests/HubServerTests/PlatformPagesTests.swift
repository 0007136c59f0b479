import HubTesting
import NotificationHubs
import Testing

@Suite("The tables of platforms in docs/protocol/rest.md")
struct PlatformPagesTests {
  /// The words in backquotes.
  private static func words(_ cell: String) -> [String] {
    cell.matches(of: #/`([^`]*)`/#).map { String($0.1) }
  }

  @Test("registrations have the prefix, the handle and the format of the sheet")
  func registrations() throws {
    let rows = try DocPage("docs/protocol/rest.md").section("3. Registrations")
    for platform in PushPlatform.allCases {
      let row = try #require(
        rows.first { $0.count == 5 && $0[0] == "`\(platform.registrationPrefix)`" })
      let handle =
        platform.traits.handleElements ?? ["\(platform.registrationPrefix)RegistrationId"]
      #expect(Self.words(row[1]).filter { $0 != "SecondaryTileName" } == handle)
      #expect(
        Self.words(row[2]).contains { $0.hasSuffix("Headers") }
          == platform.traits.hasTemplateHeaders)
      #expect(Self.words(row[3]) == [platform.sendFormat])
      #expect(Self.words(row[4]) == [platform.telemetryPrefix])
    }
  }

  @Test("credentials have the properties of the sheet, but for extensions")
  func credentials() throws {
    let rows = try DocPage("docs/protocol/rest.md").section("8. Hub management")
    for platform in PushPlatform.allCases {
      let row = try #require(
        rows.first { $0.count == 2 && $0[0] == "`\(platform.telemetryPrefix)Credential`" })
      let named = Set(Self.words(row[1])).subtracting([".p12", "Belfry-Extensions: true"])
      let traits = platform.traits
      #expect(named.isSubset(of: traits.properties), "\(platform)")
      #expect(
        Set(traits.properties).subtracting(traits.extensionProperties).isSubset(of: named),
        "\(platform)")
    }
  }
}
