import Foundation
import Testing

@testable import NotificationHubs

@Suite("Documents of hubs and jobs")
struct ManagementDocumentTests {
  static let time = Date(timeIntervalSince1970: 1_893_837_600)

  @Test("every recorded hub reads and prints back byte for byte")
  func recordedHubs() throws {
    let documents = try Recording.documents(root: "entry", with: "NotificationHubDescription")
    #expect(documents.count >= 5)
    for document in documents {
      let hub = try #require(try HubDescription.decode(document.utf8, name: ""))
      #expect(hub.authorizationRules?.count == 2 && hub.registrationTTL == nil)
      let printed = hub.entryXML(
        address: AtomAddress(try #require(document.between("<id>", "</id>"))),
        namespace: "am3verify20200623",
        published: document.contains("<published>") ? Self.time : nil, updated: Self.time)
      #expect(printed.withoutTimes == document.withoutTimes)
    }
  }

  @Test("the recorded listings of a namespace print the same; they stand for a missing hub")
  func recordedListings() throws {
    let documents = try Recording.documents(root: "feed", with: "Publicly Listed Services")
    #expect(documents.count >= 5)
    for document in documents {
      #expect(try HubDescription.decode(document.utf8, name: "x") == nil)
      let host = "am3verify20200623"
      let printed = HubListing.services(
        hubs: document.contains("<entry>") ? [host] : [],
        endpoint: "\(host).servicebus.windows.net",
        service: try #require(document.between("uuid:", ";")),
        number: try #require(document.between(";id=", "<").flatMap { Int($0) }), now: Self.time)
      #expect(printed.withoutTimes == document.withoutTimes)
    }
  }

  @Test("every recorded job reads and prints back byte for byte")
  func recordedJobs() throws {
    let calls = try Recording("ManagementApi_ShouldReceiveCorrectJobs.http").calls
      .filter { $0.content?.contains("<NotificationHubJob") == true }
    #expect(calls.count == 2)
    for call in calls {
      let document = try #require(call.content)
      let job = try NotificationHubJob.decode(document.utf8)
      #expect(job.status == .started && job.kind == .importCreateRegistrations)
      let asked = "https://am3verify20200623.servicebus.windows.net\(call.uri)"
      let printed = job.entryXML(address: AtomAddress(asked), now: Self.time)
      #expect(printed.withoutTimes == document.withoutTimes)
    }
  }

  static let full = HubDescription(
    name: "hub1", registrationTTL: 90 * 86_400 + 1.5,
    authorizationRules: [
      AuthorizationRule(
        keyName: "All", rights: [.listen, .send, .manage],
        primaryKey: Data(repeating: 1, count: 32).base64EncodedString(),
        secondaryKey: Data(repeating: 2, count: 32).base64EncodedString(), createdTime: time,
        modifiedTime: time)
    ],
    credentials: Dictionary(
      uniqueKeysWithValues: PushPlatform.allCases.map { platform in
        let names = HubCredential.propertyNames(platform)
        return (
          platform, HubCredential(Dictionary(uniqueKeysWithValues: names.map { ($0, "<\($0)>") }))
        )
      }), isDisabled: true, userMetadata: "{\"a\":\"b\"}",
    usage: .init(
      dailyOperations: 1, dailyMaxActiveDevices: 2, dailyMaxActiveRegistrations: 3,
      dailyAPICalls: 4))

  /// The same as a hub replies it.
  static var stored: HubDescription {
    var hub = full
    (hub.createdTime, hub.updatedTime) = (time, time)
    return hub
  }

  @Test("a hub with everything survives; its members stand in order")
  func fullHub() throws {
    let text = Self.full.entryXML(
      address: AtomAddress("https://h/hub1?api-version=2020-06"), namespace: "h",
      published: Self.time,
      updated: Self.time)
    #expect(try HubDescription.decode(text.utf8, name: "x") == Self.stored)
    let content = try #require(text.between("<content type=\"application/xml\">", "</content>"))
    let places = [
      "<ApnsCredential>", "<RegistrationTtl>", "<WnsCredential>", "<AuthorizationRules>",
      "<GcmCredential>", "<MpnsCredential>", "<DailyOperations>", "<DailyMaxActiveDevices>",
      "<DailyMaxActiveRegistrations>", "<DailyApiCalls>", "<UserMetadata>", "<AdmCredential>",
      "<BaiduCredential>", "<Status>", "<FcmV1Credential>", "<BrowserCredential>",
      "<XiaomiCredential>",
    ].compactMap { content.range(of: $0)?.lowerBound }
    #expect(places.count == 17 && places == places.sorted())
    var sent = try HubDescription.decodeRequest(Self.full.requestXML.utf8, name: "hub1")
    #expect(sent.usage == nil)
    sent.usage = Self.full.usage
    #expect(sent == Self.full)
    let list = HubListing.descriptions(
      [(Self.full, Self.time, Self.time)],
      address: AtomAddress("https://h/$Resources/NotificationHubs/?$skip=0"), namespace: "h",
      now: Self.time)
    #expect(try HubListing.decode(list.utf8) == [Self.stored])
    #expect(list.contains("<id>https://h/hub1?$skip=0</id>"))
  }

  @Test("secrets do not show in descriptions")
  func redaction() {
    var text = "\(Self.full) \(String(reflecting: Self.full))"
    dump(Self.full, to: &text)
    #expect(!text.contains("<Token>") && !text.contains("AQEB") && text.contains("hub1"))
  }

  @Test("names of properties get their spelling, nil members are absent, rules may be left out")
  func lenientHub() throws {
    let hub = try HubDescription.decodeRequest(
      """
      <?xml version="1.0"?><NotificationHubDescription xmlns:i="x"><GcmCredential><Properties>
      <Property><Value>k</Value><Name>googleapikey</Name></Property></Properties></GcmCredential>
      <WnsCredential i:nil="true"/><MpnsCredential><Properties/></MpnsCredential>
      <RegistrationTtl>P1D</RegistrationTtl></NotificationHubDescription>
      """.utf8, name: "h")
    #expect(hub.credentials == [.gcm: ["GoogleApiKey": "k"], .mpns: [:]])
    #expect(hub.registrationTTL == 86_400 && hub.authorizationRules == nil && !hub.isDisabled)
  }

  static func rule(_ name: String, _ rights: Set<AuthorizationRule.Right>, key: String? = nil)
    -> HubDescription
  {
    HubDescription(
      name: "h",
      authorizationRules: [AuthorizationRule(keyName: name, rights: rights, primaryKey: key)])
  }

  @Test(
    "hubs against the rules are refused",
    arguments: [
      HubDescription(name: ""), HubDescription(name: "1a"), HubDescription(name: "a b"),
      HubDescription(name: "a/b"),
      HubDescription(name: String(repeating: "a", count: 261)),
      HubDescription(name: "h", registrationTTL: 86_399),
      HubDescription(name: "h", userMetadata: String(repeating: "x", count: 1025)),
      rule("", [.listen]), rule("a/b", [.listen]), rule("a", []), rule("a", [.manage, .send]),
      rule("a", [.send], key: "short"), rule("a", [.send], key: String(repeating: "!", count: 44)),
      HubDescription(
        name: "h",
        authorizationRules: ["a", "A"].map { AuthorizationRule(keyName: $0, rights: [.send]) }),
      HubDescription(
        name: "h",
        authorizationRules: (0..<13).map { AuthorizationRule(keyName: "k\($0)", rights: [.send]) }),
    ])
  func faultyHubs(hub: HubDescription) {
    #expect(throws: WireFormatError.self) { try hub.validated() }
  }

  static let halves: [(PushPlatform, HubCredential, String?)] = [
    (.gcm, [:], "GoogleApiKey"), (.gcm, ["GcmEndpoint": "https://g/"], "GoogleApiKey"),
    (.gcm, ["GoogleApiKey": " "], "GoogleApiKey"), (.gcm, ["googleapikey": "k"], nil),
    (.fcmv1, [:], "PrivateKey"), (.fcmv1, ["PrivateKey": "p", "ClientEmail": "c"], "ProjectId"),
    (.browser, [:], "Subject"),
    (.browser, ["Subject": "s", "VapidPublicKey": "p"], "VapidPrivateKey"),
    (.xiaomi, [:], "AppSecret"), (.xiaomi, ["AppSecret": "x"], nil),
    (.baidu, ["BaiduApiKey": "b"], "BaiduSecretKey"), (.adm, ["ClientSecret": "s"], "ClientId"),
    (.adm, ["ClientId": "c", "ClientSecret": "s"], nil), (.wns, [:], "PackageSid"),
    (.wns, ["PackageSid": "p"], "SecretKey"), (.wns, ["WnsCertificate": "c"], "CertificateKey"),
    (.wns, ["WnsCertificate": "c", "CertificateKey": ""], nil),
    (.wns, ["PackageSid": "p", "SecretKey": "s"], nil), (.mpns, [:], nil),
    (.mpns, ["Thumbprint": "t"], "MpnsCertificate"),
    (.mpns, ["MpnsCertificate": "c", "CertificateKey": "k"], nil),
  ]

  @Test("a credential without a property that it needs is refused by name", arguments: halves)
  func halfCredentials(platform: PushPlatform, credential: HubCredential, missing: String?) {
    let hub = HubDescription(name: "h", credentials: [platform: credential])
    var refusal: String?
    do { _ = try hub.validated() } catch { refusal = error.message }
    #expect(
      refusal
        == missing.map {
          "'\(platform.telemetryPrefix)Credential' must have the property '\($0)'."
        })
  }

  @Test(
    "a status is a boolean",
    arguments: [
      ("true", true), (" 1 ", true), ("TRUE", true), ("false", false), ("0", false), ("maybe", nil),
      ("", nil), ("2", nil),
    ] as [(String, Bool?)])
  func status(text: String, isDisabled: Bool?) throws {
    let body =
      "<NotificationHubDescription><Status>\(text)</Status></NotificationHubDescription>"
    if let isDisabled {
      #expect(try HubDescription.decodeRequest(body.utf8, name: "h").isDisabled == isDisabled)
    } else {
      #expect(throws: WireFormatError("The specified resource description is invalid.")) {
        try HubDescription.decodeRequest(body.utf8, name: "h")
      }
    }
  }

  @Test("a right that stands twice, or is unknown, is refused", arguments: ["Send", "Fly"])
  func faultyRights(right: String) {
    let text =
      "<NotificationHubDescription><AuthorizationRules><AuthorizationRule><Rights>"
      + "<AccessRights>Send</AccessRights><AccessRights>\(right)</AccessRights></Rights>"
      + "<KeyName>k</KeyName></AuthorizationRule></AuthorizationRules></NotificationHubDescription>"
    #expect(throws: WireFormatError.self) {
      try HubDescription.decodeRequest(text.utf8, name: "h")
    }
  }

  @Test(
    "durations read and print",
    arguments: [
      (WireDuration.forever, nil, WireDuration.forever), ("P90D", 7_776_000, "P90D"),
      ("PT36H", 129_600, "P1DT12H"), ("P1DT2H3M4.5S", 93_784.5, "P1DT2H3M4.5S"),
      ("P1Y2M", 36_720_000, "P425D"), ("PT0S", 0, "PT0S"),
      ("P99999999D", nil, WireDuration.forever),
    ])
  func durations(text: String, seconds: TimeInterval?, printed: String) {
    #expect(WireDuration.parse(text) == (seconds.map { .seconds($0) } ?? .forever))
    #expect(WireDuration.text(seconds) == printed)
  }

  @Test(
    "texts that are no durations are refused",
    arguments: [
      "", "P", "PT", "1D", "P1", "P1S", "PT1D", "-P1D", "P1D1D", "P1.5D", "P1DT", "PT1S1S",
      "PT1M1H",
      "P1DTT1S", "PT1ST", "P..D", "P1e5D",
    ])
  func wrongDurations(text: String) {
    #expect(WireDuration.parse(text) == nil)
  }

  static let done = NotificationHubJob(
    kind: .exportRegistrations, outputContainerURI: "https://blob/c?sig=a&b", jobID: "j-1",
    status: .completed, progress: 99.5,
    outputProperties: [
      NotificationHubJob.failedFilePath: "ns//hub/j-1/Failed.txt",
      NotificationHubJob.outputFilePath: "ns//hub/j-1/Output.txt",
    ], createdAt: time, updatedAt: time)

  @Test("a finished job carries its files under the prefix that clients look for")
  func finishedJob() throws {
    let text = Self.done.entryXML(
      address: AtomAddress("https://h/hub/jobs?api-version=2020-06"), now: Self.time)
    #expect(try NotificationHubJob.decode(text.utf8) == Self.done)
    let payload = [
      "<NotificationHubJob xmlns=\"\(WireName.connectNamespace)\"",
      " xmlns:i=\"\(WireName.schemaInstanceNamespace)\"><JobId>j-1</JobId>",
      "<Progress>99.5</Progress><Type>ExportRegistrations</Type><Status>Completed</Status>",
      "<OutputContainerUri>https://blob/c?sig=a&amp;b</OutputContainerUri><OutputProperties",
      " xmlns:d3p1=\"http://schemas.microsoft.com/2003/10/Serialization/Arrays\">",
      "<d3p1:KeyValueOfstringstring><d3p1:Key>OutputFilePath</d3p1:Key>",
      "<d3p1:Value>ns//hub/j-1/Output.txt</d3p1:Value></d3p1:KeyValueOfstringstring>",
    ].joined()
    #expect(text.contains(payload))
    let feed = NotificationHubJob.feedXML(
      [Self.done, Self.done], address: AtomAddress("https://h/hub/jobs?api-version=2020-06"),
      now: Self.time)
    #expect(try NotificationHubJob.decodeFeed(feed.utf8) == [Self.done, Self.done])
    #expect(feed.contains("<title type=\"text\">jobs</title>"))
  }

  @Test("a submitted job keeps only what the client decides")
  func submittedJob() throws {
    var job = Self.done
    job.failure = "x"
    let sent = try NotificationHubJob.decodeRequest(job.requestXML.utf8)
    #expect(
      sent
        == NotificationHubJob(
          kind: .exportRegistrations, outputContainerURI: "https://blob/c?sig=a&b"))
  }

  @Test(
    "jobs against the rules are refused in the words of the service",
    arguments: [
      "", "<NotificationHubJob/>", "<Other/>",
      "<NotificationHubJob><Type>Fly</Type><OutputContainerUri>https://a/</OutputContainerUri></NotificationHubJob>",
      "<NotificationHubJob><Type>ExportRegistrations</Type></NotificationHubJob>",
      "<NotificationHubJob><Type>ExportRegistrations</Type><OutputContainerUri>here</OutputContainerUri></NotificationHubJob>",
      "<NotificationHubJob><Type>ExportRegistrations</Type><OutputContainerUri>https://a/</OutputContainerUri><ImportFileUri>https://a/</ImportFileUri></NotificationHubJob>",
      "<NotificationHubJob><Type>ImportUpdateRegistrations</Type><OutputContainerUri>https://a/</OutputContainerUri></NotificationHubJob>",
    ])
  func faultyJobs(text: String) {
    #expect(throws: NotificationHubJob.invalidPayload) {
      try NotificationHubJob.decodeRequest(text.utf8)
    }
  }
}
