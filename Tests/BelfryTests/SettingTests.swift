import Foundation
import HubCore
import HubServer
import Testing

@testable import belfry

@Suite("Settings of the server")
struct SettingTests {
  private static let usual = HubRuntime.Options(data: DataDirectory(path: "belfry-data"))

  /// Those that are not the value of a single option: they are checked, or name files to read.
  private static let others: Set<String> = [
    "data", "tlsPort", "tlsCertificate", "tlsKey", "tlsSelfSigned", "databaseSlots", "trust",
    "trustedProxies", "shutdownTimeout", "oidcIssuer", "oidcClient", "oidcSecretFile", "oidcName",
    "logFormat", "logLevel",
  ]

  /// A value of the setting that is not its default.
  private static func other(_ setting: Setting) -> String {
    switch setting.kind {
    case .text, .list: "x"
    case .flag: "true"
    case .choice(let words), .time(_, let words): words.last { $0 != setting.standard } ?? ""
    case .integer(let range): "\(range.upperBound)"
    }
  }

  @Test("each that is declared is listed")
  func listed() throws {
    let file = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Sources/belfry/Configuration/Setting+Server.swift")
    let declared = try String(contentsOf: file, encoding: .utf8)
      .matches(of: #/Setting\(\s*(?:key: )?"(\w+)"/#).map { String($0.1) }
    #expect(declared.sorted() == Setting.all.map(\.key).sorted())
  }

  @Test("a default changes no option, and another value changes the option of its setting alone")
  func options() {
    var changed: Set<String> = []
    var seen: Set<String> = []
    for setting in Setting.all {
      var options = Self.usual
      setting.apply(&options, setting.standard.map { [$0] } ?? [])
      #expect("\(options)" == "\(Self.usual)", "\(setting.key)")
      setting.apply(&options, [Self.other(setting)])
      guard "\(options)" != "\(Self.usual)" else { continue }
      changed.insert(setting.key)
      #expect(seen.insert("\(options)").inserted, "\(setting.key) sets another's option")
    }
    #expect(changed == Set(Setting.all.map(\.key)).subtracting(Self.others))
  }

  @Test("units of settings are those of their options, and 0 days are forever")
  func units() throws {
    let configuration = try Configuration(
      file: nil,
      environment: [
        "BELFRY_KEEP_NOTIFICATIONS_DAYS": "2", "BELFRY_KEEP_ACTIVITY_DAYS": "0",
        "BELFRY_OPERATOR_IDLE_MINUTES": "2", "BELFRY_REQUEST_TIMEOUT": "7",
        "BELFRY_DEAD_HANDLE_PERCENT": "29", "BELFRY_PORTAL": "off", "BELFRY_PUBLIC_NAMES": "a, b",
        "BELFRY_KEEP_MESSAGE_TEXT": "12h",
      ])
    var options = Self.usual
    for setting in Setting.all { setting.apply(&options, configuration.list(setting)) }
    #expect(options.retention.notifications == 172_800)
    #expect(options.retention.activity.lifetime == nil)
    #expect(options.signIn.idle == 120)
    #expect(options.requestTimeout == .seconds(7))
    #expect(options.deadHandleShare == 0.29)
    #expect(!options.portal)
    #expect(options.publicNames == ["a", "b"])
    #expect(options.retention.texts == .time(43_200))
    #expect(options.retention.keptText == 43_200)
  }

  @Test("texts are kept no longer than their notification")
  func texts() {
    var retention = StoreMaintenance.Retention()
    #expect(retention.keptText == 2_592_000)
    retention.texts = .time(40 * 86_400)
    #expect(retention.keptText == 2_592_000)
    retention.texts = .time(60)
    #expect(retention.keptText == 60)
    retention.texts = .off
    #expect(retention.keptText == 0)
    (retention.texts, retention.notifications) = (.notification, nil)
    #expect(retention.keptText == nil)
  }

  @Test(
    "a time without a unit that it knows, or outside the range, is refused with what is allowed",
    arguments: ["30 days", "", "on", "-1d", "59", "3651d", "99999999999999999999d"])
  func times(text: String) throws {
    let error = #expect(throws: ConfigurationError.self) {
      try Configuration(file: nil, environment: ["BELFRY_KEEP_MESSAGE_TEXT": text])
    }
    #expect(
      "\(try #require(error))".contains(
        "must be notification or off or a time from 1m to 3650d, in s, m, h or d, not '\(text)'"))
  }
}
