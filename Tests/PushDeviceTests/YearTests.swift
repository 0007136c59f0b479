import Foundation
import NotificationHubs
import PushDevice
import PushDeviceTesting
import Testing

/// The figures of docs/device.md, "A year of requests".
@Suite("A year of a device")
struct YearTests {
  /// What the app and the system do in a year, by the official SDK's rules (version of 2025-09, our
  /// reading of its source): it saves two seconds after the last change, and the comparison that is
  /// to spare a request always finds a difference, because only the saved copy has an expiry. The
  /// token callback returns early if the token is the same; nothing is ever refreshed.
  struct OfficialRules {
    private(set) var requests = 0
    private var hasChange = false
    private var token: UInt8?

    mutating func setTags() { hasChange = true }
    mutating func didRegister(_ token: UInt8) {
      guard self.token != token else { return }
      self.token = token
      hasChange = true
    }
    mutating func timePasses() {
      if hasChange { requests += 1 }
      hasChange = false
    }
  }

  @Test("a year of 1095 launches is 69 requests, and a device that the hub loses is back in a week")
  func year() async throws {
    let device = TestDevice()
    // Of an app that adds its tags at each launch, as the tutorials' does, and of one that adds them
    // when they change.
    var (tutorial, careful) = (OfficialRules(), OfficialRules())
    var launches = 0
    for day in 0..<365 {
      // An app update each month, a system update with a new token each quarter.
      device.system.facts.appVersion = "1.\(day / 30)"
      device.system.facts.systemVersion = "18.\(day / 91)"
      let token = UInt8(1 + day / 91)
      for hour in [8, 13, 20] {
        launches += 1
        device.clock.endProcess()
        let push = device.process()
        await push.start()
        await push.didRegister(deviceToken: .token(token))
        tutorial.didRegister(token)
        careful.didRegister(token)
        try await push.insert("news")
        tutorial.setTags()
        if launches == 1 { careful.setTags() }
        // Once a week the user changes three switches, one of them back.
        if day % 7 == 3, hour == 20 {
          try await push.insert(Tag(rawValue: "week\(day / 7)"))
          try await push.insert("sport")
          try await push.remove("sport")
          tutorial.setTags()
          careful.setTags()
        }
        await device.clock.advance(by: .seconds(600))
        tutorial.timePasses()
        careful.timePasses()
        await push.willLeaveForeground()
        await push.settled()
        await device.clock.advance(by: .seconds(hour == 20 ? 12 * 3_600 - 600 : 3_600 * 6 - 600))
        let id = try #require(await push.installationID)
        if day == 200, hour == 20 { device.hub.lose(id) }
        if day == 208 { #expect(device.hub.installations[id] != nil) }
      }
    }
    #expect(launches == 1_095)
    #expect(device.hub.attempts == 69)
    #expect(careful.requests == 57)
    #expect(tutorial.requests == 1_095)
    #expect(device.hub.installations.count == 1)
  }
}
