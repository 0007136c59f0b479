import Testing

@testable import NotificationHubs

@Suite("The table of platform traits")
struct PlatformTraitsTests {
  @Test("numbers, send formats and prefixes tell the platforms apart")
  func identity() {
    let all = PushPlatform.allCases
    #expect(all.map(\.storedCode) == (1...Int64(all.count)).map { $0 })
    #expect(Set(all.map(\.sendFormat)).count == all.count)
    #expect(Set(all.map(\.telemetryPrefix)).count == all.count)
    #expect(Set(all.map(\.registrationPrefix)).count == all.count)
  }

  @Test("the numbers that databases hold stay what they are")
  func codes() {
    let codes: [PushPlatform: Int64] = [
      .apns: 1, .wns: 2, .mpns: 3, .gcm: 4, .fcmv1: 5, .adm: 6, .baidu: 7, .browser: 8, .xiaomi: 9,
    ]
    for (platform, code) in codes { #expect(platform.storedCode == code) }
  }

  @Test(
    "what is required, an extension or a certificate is a property",
    arguments: PushPlatform.allCases)
  func properties(platform: PushPlatform) {
    let traits = platform.traits
    let names = Set(traits.properties)
    #expect(names.count == traits.properties.count)
    #expect(names.isSuperset(of: traits.requiredProperties.joined()))
    #expect(names.isSuperset(of: traits.extensionProperties))
    if let certificate = traits.certificate {
      #expect(names.isSuperset(of: [certificate, PlatformTraits.certificatePassword]))
    }
  }

  @Test("what the command line calls a platform is its name alone, in any letter case")
  func words() {
    for platform in PushPlatform.allCases {
      let phone = platform.traits.phone
      var names = [platform.word, platform.rawValue, platform.sendFormat]
      names += platform.traits.otherWords + (phone.map { [$0.service] } ?? [])
      for name in names {
        #expect(
          PushPlatform(named: name) == platform
            && PushPlatform(named: name.uppercased()) == platform)
      }
    }
    #expect(PushPlatform(named: "palm") == nil)
    #expect(Set(PushPlatform.sheetOrder) == Set(PushPlatform.allCases))
    #expect(PushPlatform.sheetOrder.count == PushPlatform.allCases.count)
  }

  @Test("a service that runs has a phone and a credential that people can set")
  func phones() {
    for platform in PushPlatform.allCases {
      let isRunning = platform.traits.successor == nil
      let credential = platform.traits.credential
      #expect((platform.traits.phone != nil) == isRunning, "\(platform)")
      #expect(credential.ways.contains { $0.name != nil } == isRunning, "\(platform)")
      #expect(credential.ways.indices.contains(credential.preferredWay))
      for way in credential.ways {
        #expect(credential.fields(of: way).count == way.required.count + way.optional.count)
      }
    }
    let services = PushPlatform.allCases.compactMap(\.traits.phone?.service)
    #expect(Set(services).count == services.count)
  }

  @Test("a kind of push is told by its topic, the longest suffix of which is its own")
  func pushTypes() {
    for type in APNsPayload.PushType.allCases where !type.topicSuffix.isEmpty {
      #expect(APNsPayload.PushType(topic: "com.example.app" + type.topicSuffix) == type)
    }
    #expect(APNsPayload.PushType(topic: "com.example.app") == nil)
  }
}
